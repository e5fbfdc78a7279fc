// The catalogue as data: /data/works.js and its shards, loaded once, made searchable and sortable in slices short
// enough that the page never stands still.

/**
 * A work. `text` is what a search looks through.
 * @typedef {{creator: string, slug: string, title: string, summary: string, bytes: number, sha256: string,
 *   released: string, tags: string[], capabilities: string[], tinyjam: boolean, cover: string | null,
 *   text: string, sortTitle: string}} Row
 * @typedef {"" | "smallest" | "title"} Order
 */

/** How long a slice of work may take, in milliseconds. */
const SLICE_MS = 8;

let sliceEnds = 0;

/** Lets the browser draw and answer the player, if this slice has lasted long enough. */
export async function breathe() {
  if (performance.now() < sliceEnds) return;
  await new Promise(resolve => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(null);
  });
  sliceEnds = performance.now() + SLICE_MS;
}

/**
 * Small letters without accents, so that "Müller" is found by "muller".
 * @param {string} text
 */
export function fold(text) {
  return text.normalize("NFKD").replace(/\p{M}+/gu, "").toLowerCase();
}

/** Every published work, newest first. @type {Promise<Row[]> | null} */
let loading = null;

/** Loads the catalogue, once; after a failure the next call tries again. */
export function load() {
  loading ??= read().catch(problem => {
    loading = null;
    throw problem;
  });
  return loading;
}

/** @returns {Promise<Row[]>} */
async function read() {
  const address = "/data/works.js";
  /** @type {{columns: string[], works: unknown[][], shards: string[]}} */
  const { columns, works, shards } = await import(address);
  const parts = await Promise.all(shards.map(async shard => {
    const response = await fetch(shard);
    if (!response.ok) throw new Error(`${shard}: ${response.status}`);
    return response.text();
  }));
  /** @type {Row[]} */
  const rows = [];
  await breathe();
  for (const part of [works, ...parts]) {
    const values = /** @type {unknown[][]} */ (typeof part === "string" ? JSON.parse(part) : part);
    for (const value of values) {
      const row = Object.fromEntries(columns.map((name, i) => [name, value[i]]));
      row.sortTitle = fold(String(row.title));
      row.text = `${row.sortTitle}\n${fold(String(row.summary))}\n${row.creator} ${/** @type {string[]} */ (row.tags).join(" ")}`;
      rows.push(/** @type {Row} */ (/** @type {unknown} */ (row)));
      await breathe();
    }
    await breathe();
  }
  return rows;
}

/** @type {Map<Order, Promise<Row[]>>} */
const orders = new Map();

/**
 * All works in an order, sorted once.
 * @param {Order} order
 */
export async function sorted(order) {
  const rows = await load();
  if (order === "") return rows;
  const compare = order === "smallest"
    ? (/** @type {Row} */ a, /** @type {Row} */ b) => a.bytes - b.bytes
    : (/** @type {Row} */ a, /** @type {Row} */ b) => a.sortTitle < b.sortTitle ? -1 : Number(a.sortTitle > b.sortTitle);
  if (!orders.has(order)) orders.set(order, mergeSort(rows, compare));
  return orders.get(order) ?? rows;
}

/**
 * Sorts in slices: runs by the browser's own sort, then merges.
 * @param {Row[]} rows @param {(a: Row, b: Row) => number} compare
 */
async function mergeSort(rows, compare) {
  /** @type {Row[][]} */
  let runs = [];
  for (let i = 0; i < rows.length; i += 500) {
    runs.push(rows.slice(i, i + 500).sort(compare));
    await breathe();
  }
  while (runs.length > 1) {
    /** @type {Row[][]} */
    const longer = [];
    for (let i = 0; i < runs.length; i += 2) {
      const left = runs[i], right = runs[i + 1] ?? [], merged = [];
      for (let l = 0, r = 0; l < left.length || r < right.length;) {
        merged.push(r >= right.length || l < left.length && compare(left[l], right[r]) <= 0 ? left[l++] : right[r++]);
        if (merged.length % 250 === 0) await breathe();
      }
      longer.push(merged);
    }
    runs = longer;
  }
  return runs[0] ?? [];
}
