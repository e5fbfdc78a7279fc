// What the catalogue is asked for: read from the address, written to it, and compared with works.

import { fold } from "./rows.js";

/**
 * @typedef {import("./rows.js").Row} Row
 * @typedef {{q: string, sort: string, size: string, format: string, can: string, tag: string}} Query
 */

/** @type {(keyof Query)[]} */
const NAMES = ["q", "sort", "size", "format", "can", "tag"];

/** @type {Record<string, (row: Row) => boolean>} */
const FORMATS = {
  html: row => !row.capabilities.includes("python_backend"),
  python: row => row.capabilities.includes("python_backend"),
  tinyjam: row => row.tinyjam,
};

/**
 * The query in an address or a form.
 * @param {URLSearchParams | FormData} from
 * @returns {Query}
 */
export function read(from) {
  const values = NAMES.map(name => [name, String(from.get(name) ?? "").slice(0, 100)]);
  return /** @type {Query} */ (Object.fromEntries(values));
}

/**
 * The address of a query, shortest form.
 * @param {Query} query
 */
export function address(query) {
  const given = NAMES.filter(name => query[name].trim() !== "").map(name => [name, query[name]]);
  return given.length ? `/?${new URLSearchParams(given)}` : "/";
}

/**
 * The works that a query asks for.
 * @param {Row[]} rows @param {Query} query @param {number} largest the largest of the size classes
 */
export function select(rows, query, largest) {
  const words = fold(query.q).split(/\s+/).filter(Boolean);
  const most = query.size === "larger" ? Infinity : Number(query.size) || Infinity;
  const least = query.size === "larger" ? largest : -1;
  const format = FORMATS[query.format] ?? (() => true);
  return rows.filter(row =>
    row.bytes <= most && row.bytes > least && format(row)
    && (!query.can || row.capabilities.includes(query.can))
    && (!query.tag || row.tags.includes(query.tag))
    && words.every(word => row.text.includes(word)));
}
