// A drawer of the catalogue, as theme/templates/card.html writes it.

import { mark } from "./mark.js";

const figures = new Intl.NumberFormat("en");
const blank = document.createElement("template");
blank.innerHTML = `<li class="drawer"><div class="inside"></div><p class="size"><b></b> bytes</p>
<svg class="ruler" viewBox="0 0 23 1" preserveAspectRatio="none" aria-hidden="true"><path d="M0 .5h23"/><path/></svg>
<h2 dir="auto"><a></a></h2><p class="by">by <a></a></p><p class="summary" dir="auto"></p></li>`;

const picture = document.createElement("template");
picture.innerHTML = `<img alt="" width="320" height="200" loading="lazy"><svg class="mark" viewBox="0 0 6 6" aria-hidden="true"><path/><path/></svg>`;

/** @param {number} count */
export function thousands(count) {
  return figures.format(count);
}

/**
 * @param {import("./rows.js").Row} row
 * @returns {HTMLLIElement}
 */
export function card(row) {
  const item = /** @type {HTMLLIElement} */ (/** @type {Element} */ (blank.content.firstElementChild).cloneNode(true));
  const [inside, size, ruler, heading, by, summary] = item.children;
  const path = `/${row.creator}/${row.slug}/`;
  inside.append(row.cover ? cover(path + row.cover) : figure(row.sha256));
  size.children[0].textContent = thousands(row.bytes);
  if (row.bytes === 1) size.lastChild?.replaceWith(" byte");
  ruler.children[1].setAttribute("d", `M0 .5h${Number(Math.log2(Math.max(1, row.bytes)).toFixed(1))}`);
  link(heading.children[0], path, row.title);
  link(by.children[0], `/${row.creator}/`, row.creator);
  if (row.summary) summary.textContent = row.summary;
  else summary.remove();
  return item;
}

/** @param {Element} a @param {string} href @param {string} text */
function link(a, href, text) {
  a.setAttribute("href", href);
  a.textContent = text;
}

/** @param {string} src */
function cover(src) {
  const image = picture.content.children[0].cloneNode(true);
  /** @type {HTMLImageElement} */ (image).src = src;
  return image;
}

/** @param {string} digest */
function figure(digest) {
  const svg = /** @type {Element} */ (picture.content.children[1].cloneNode(true)), { path, accent, hue } = mark(digest);
  svg.classList.add(`h${hue}`);
  svg.children[0].setAttribute("d", path);
  svg.children[1].setAttribute("d", accent);
  return svg;
}
