// What a submission is made of: which file is what, and what can be seen to be wrong before it is sent. The server looks
// again, and further.

import { work, zip } from "./policy.js";

/** @typedef {{field: string, words: string, file: File, bytesMax: number}} Part */

const SLUG = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/**
 * @param {string} name
 * @returns {{field: string, words: string, bytesMax: number} | null}
 */
export function kind(name) {
  const ending = /\.([a-z0-9]+)$/i.exec(name)?.[1].toLowerCase() ?? "";
  if (["html", "htm"].includes(ending)) return { field: "payload", words: "the page", bytesMax: work.htmlBytesMax };
  if (ending === "zip") return { field: "payload", words: "the zip", bytesMax: zip.archiveBytesMax };
  if (ending === "json") return { field: "sidecar", words: "the sidecar", bytesMax: work.sidecarBytesMax };
  if (ending === "py") return { field: "python", words: "the Python function", bytesMax: work.pythonBytesMax };
  if (["png", "jpg", "jpeg", "webp", "gif"].includes(ending)) return { field: "cover", words: "the cover", bytesMax: work.coverBytesMax };
  return null;
}

/**
 * @param {File[]} files
 * @returns {Promise<{parts: Part[], problems: string[]}>}
 */
export async function sorted(files) {
  const parts = /** @type {Part[]} */ ([]), problems = [];
  for (const file of files) {
    const found = kind(file.name);
    if (!found) problems.push(`${file.name}: this kind of file is not taken. Send a page or a zip, work.json, a cover, a .py file.`);
    else if (parts.some(p => p.field === found.field)) problems.push(`${file.name}: there is ${found.words} already.`);
    else {
      parts.push({ ...found, file });
      if (file.size > found.bytesMax) problems.push(`${file.name} has ${file.size.toLocaleString("en")} bytes, at most ${found.bytesMax.toLocaleString("en")} are taken.`);
      if (file.size === 0) problems.push(`${file.name} is empty.`);
    }
  }
  const payload = parts.find(p => p.field === "payload"), sidecar = parts.find(p => p.field === "sidecar");
  if (!payload) problems.push("The page is missing: an .html file, or a .zip with everything in it.");
  else if (!sidecar && payload.words === "the page") problems.push("work.json is missing.");
  if (sidecar) problems.push(...await sidecarProblems(sidecar.file));
  return { parts, problems };
}

/** @param {File} file */
async function sidecarProblems(file) {
  let sidecar;
  try {
    sidecar = JSON.parse(await file.text());
  } catch (error) {
    return [`${file.name} is not JSON: ${error instanceof Error ? error.message : error}`];
  }
  if (typeof sidecar?.id !== "string" || !SLUG.test(sidecar.id) || sidecar.id.length > work.slugCharsMax) {
    return [`${file.name}: "id" is the name in the address: a to z, 0 to 9 and single hyphens, at most ${work.slugCharsMax}.`];
  }
  return [];
}
