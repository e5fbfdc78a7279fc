// What the gates found, as a list: place, what is wrong, why it matters, what to do.

/** @typedef {{rule: string, category: string, severity: string, file: string, line: number, column: number, excerpt: string, what: string, why: string, fix: string, explanation?: string}} Finding */

const WEIGHT = { reject: "Mend this", explainable: "Mend or explain this", note: "Note" };

/** An element with a text and a class. @param {string} name @param {string} [text] @param {string} [kind] */
export function element(name, text = "", kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

/** A paragraph in which what stands between backticks is code. @param {string} text @param {string} [kind] */
function paragraph(text, kind = "") {
  const made = element("p", "", kind);
  made.append(...text.split("`").map((part, i) => i % 2 ? element("code", part) : part));
  return made;
}

/** @param {Finding} finding */
export function place(finding) {
  return finding.line ? `${finding.file}:${finding.line}:${finding.column}` : finding.file;
}

/** @param {Finding[]} findings */
export function findingList(findings) {
  const list = element("ol", "", "findings");
  const weights = Object.keys(WEIGHT);
  for (const finding of findings.toSorted((a, b) => weights.indexOf(a.severity) - weights.indexOf(b.severity))) {
    const item = element("li", "", finding.severity);
    const head = element("p", "", "where");
    head.append(element("b", WEIGHT[/** @type {keyof WEIGHT} */ (finding.severity)] ?? finding.severity), " ", element("code", place(finding)));
    item.append(head, paragraph(finding.what));
    if (finding.excerpt) item.append(element("pre", finding.excerpt));
    if (finding.explanation) item.append(element("p", `Explained: ${finding.explanation}`, "quiet"));
    if (finding.severity !== "note") {
      item.append(paragraph(finding.why, "quiet"), paragraph(finding.fix));
    }
    if (finding.severity === "explainable") {
      const how = element("p", "Or say in work.json why it is there: ", "quiet");
      how.append(element("code", `"explain": {"${finding.rule}": "…"}`));
      item.append(how);
    }
    list.append(item);
  }
  return list;
}
