// Requests to the API on behalf of the member of this tab. What it refuses comes back as an Error whose message is for
// people.

import { Member } from "./member.js";

/** An answer that is a refusal. */
export class Refused extends Error {
  /** @param {number} status @param {{type?: string, title?: string, detail?: string}} problem */
  constructor(status, problem) {
    super([problem.title && `${problem.title}.`, problem.detail].filter(Boolean).join(" ") || `The server answered ${status}.`);
    this.status = status;
    this.kind = problem.type?.split("#")[1] ?? "";
  }
}

/**
 * @param {Member} member
 * @param {string} method
 * @param {string} path below `/api/`
 * @param {unknown} [body] sent as JSON
 * @returns {Promise<any>} what the answer holds; null if it holds nothing
 */
export async function ask(member, method, path, body) {
  const headers = new Headers({ Authorization: `Bearer ${await member.token(location.origin)}` });
  if (body !== undefined) headers.set("Content-Type", "application/json");
  let answer;
  try {
    answer = await fetch(`/api/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The server cannot be reached. Check the connection and try again.");
  }
  const text = await answer.text();
  if (!answer.ok) throw new Refused(answer.status, parsed(text));
  return text ? JSON.parse(text) : null;
}

/**
 * Sends files, and says how much of them has gone.
 * @param {Member} member
 * @param {FormData} form
 * @param {(share: number) => void} progress from 0 to 1
 * @returns {Promise<any>}
 */
export async function upload(member, form, progress) {
  const token = await member.token(location.origin);
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.upload.onprogress = event => { if (event.lengthComputable) progress(event.loaded / event.total); };
    request.onerror = () => fail(new Error("The upload broke off. Check the connection and send it again."));
    request.onload = () => {
      const answer = parsed(request.responseText);
      if (request.status === 202) done(answer);
      else fail(new Refused(request.status, answer));
    };
    request.open("POST", "/api/submissions");
    request.setRequestHeader("Authorization", `Bearer ${token}`);
    request.send(form);
  });
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
