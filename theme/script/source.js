// A source file, line by line: numbered, coloured, with what was found in the margin, or beside another version of it.

import { element, place } from "./findings.js";

/** @typedef {import("./findings.js").Finding} Finding */

/** A longer line is cut; a button shows the rest. */
const LINE_CHARS = 600;
/** Lines that are compared one by one; past that a changed part is shown as a whole. */
const COMPARED = 4_000_000;
const CONTEXT = 3;

const TOKENS = {
  html: /(?<comment><!--[^]*?-->|\/\*[^]*?\*\/|(?<![:"'\w/])\/\/[^\n]*)|(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?<tag><\/?[a-z][\w-]*|<!doctype)|(?<word>\b(?:async|await|break|case|catch|class|const|continue|default|delete|do|else|export|extends|false|finally|for|function|if|import|in|instanceof|let|new|null|of|return|static|super|switch|this|throw|true|try|typeof|undefined|var|void|while|yield)\b)|(?<number>\b(?:0x[\da-f]+|\d[\d_]*\.?\d*(?:e[+-]?\d+)?)\b)/gi,
  python: /(?<comment>#[^\n]*)|(?<string>"""[^]*?"""|'''[^]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<word>\b(?:and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\b)|(?<number>\b\d[\d_]*\.?\d*(?:e[+-]?\d+)?\b)/g,
};

/** The text cut into lines of coloured pieces. @param {string} text @param {keyof TOKENS} language */
export function lines(text, language) {
  /** @type {{kind: string, text: string}[][]} */
  const all = [[]];
  const put = (/** @type {string} */ kind, /** @type {string} */ piece) => piece.split("\n").forEach((part, i) => {
    if (i) all.push([]);
    if (part) all[all.length - 1].push({ kind, text: part });
  });
  let end = 0;
  for (const match of text.matchAll(TOKENS[language])) {
    put("", text.slice(end, match.index));
    const [kind = ""] = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined) ?? [];
    put(kind, match[0]);
    end = match.index + match[0].length;
  }
  put("", text.slice(end));
  return all;
}

/**
 * @param {{name: string, text: string}} file
 * @param {Finding[]} findings those of this file
 */
export function source(file, findings) {
  const code = element("div", "", "source");
  code.tabIndex = 0;
  code.setAttribute("role", "region");
  code.setAttribute("aria-label", file.name);
  lines(file.text, file.name.endsWith(".py") ? "python" : "html").forEach((pieces, i) => {
    const row = line(String(i + 1), pieces);
    const found = findings.filter(f => f.line === i + 1);
    if (found.length) row.classList.add("found");
    code.append(row, ...found.map(f => {
      const note = element("p", "", `margin ${f.severity}`);
      note.append(element("b", `${place(f)} ${f.rule}`), ` ${f.what}${f.explanation ? ` Explained: ${f.explanation}` : ""}`);
      return note;
    }));
  });
  return code;
}

/** @param {string} number @param {{kind: string, text: string}[]} pieces @param {string} [sign] */
function line(number, pieces, sign = "") {
  const row = element("div", "", "line");
  row.append(element("span", number, "place"));
  if (sign) {
    row.classList.add(sign === "+" ? "added" : "removed");
    row.append(element("span", sign, "sign"));
  }
  const code = element("code");
  let left = LINE_CHARS;
  pieces.forEach(({ kind, text }, i) => {
    if (left <= 0) return;
    code.append(kind ? element("span", text.slice(0, left), kind) : text.slice(0, left));
    left -= text.length;
    if (left <= 0) {
      const rest = -left + pieces.slice(i + 1).reduce((sum, p) => sum + p.text.length, 0);
      if (!rest) return;
      const more = element("button", `${rest.toLocaleString("en")} more characters`);
      more.addEventListener("click", () => code.replaceChildren(...pieces.map(p => p.kind ? element("span", p.text, p.kind) : p.text)));
      code.append(more);
    }
  });
  row.append(code);
  return row;
}

/**
 * What changed from one text to another: runs of lines that stay, go and come.
 * @param {string[]} before @param {string[]} after
 * @returns {{sign: "" | "-" | "+", text: string, number: number}[]}
 */
export function difference(before, after) {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const old = before.slice(head, before.length - tail), fresh = after.slice(head, after.length - tail);
  /** @type {{sign: "" | "-" | "+", text: string, number: number}[]} */
  const rows = after.slice(0, head).map((text, i) => ({ sign: "", text, number: i + 1 }));
  const width = fresh.length + 1;
  // The length of the longest common run of lines from each pair of places on.
  const longest = old.length * fresh.length <= COMPARED ? new Uint16Array((old.length + 1) * width) : null;
  if (longest) {
    for (let i = old.length - 1; i >= 0; i--) {
      for (let j = fresh.length - 1; j >= 0; j--) {
        longest[i * width + j] = old[i] === fresh[j] ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
  }
  let i = 0, j = 0;
  while (i < old.length || j < fresh.length) {
    if (longest && i < old.length && j < fresh.length && old[i] === fresh[j]) {
      rows.push({ sign: "", text: fresh[j], number: head + ++j });
      i++;
    } else if (j === fresh.length || (i < old.length && (!longest || longest[(i + 1) * width + j] >= longest[i * width + j + 1]))) {
      rows.push({ sign: "-", text: old[i], number: head + ++i });
    } else {
      rows.push({ sign: "+", text: fresh[j], number: head + ++j });
    }
  }
  const start = after.length - tail;
  return [...rows, ...after.slice(start).map((text, k) => ({ sign: /** @type {const} */ (""), text, number: start + k + 1 }))];
}

/** The changed lines with a few around them. @param {string} name @param {string} before @param {string} after */
export function changes(name, before, after) {
  const code = element("div", "", "source");
  code.tabIndex = 0;
  code.setAttribute("role", "region");
  code.setAttribute("aria-label", `${name}, what changed`);
  const rows = difference(before.split("\n"), after.split("\n"));
  const isNear = (/** @type {number} */ i) => rows.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some(r => r.sign);
  let gap = false;
  rows.forEach((row, i) => {
    if (!isNear(i)) {
      gap = true;
      return;
    }
    if (gap) code.append(element("p", "…", "gap"));
    gap = false;
    code.append(line(String(row.number), lines(row.text, name.endsWith(".py") ? "python" : "html").flat(), row.sign));
  });
  return code.childElementCount ? code : element("p", "Nothing changed in this file.", "quiet");
}
