// The Python function of a work, called for it: one call at a time, and with the state of the visit where the work
// declares saves and sends no state of its own.

import { limits } from "./policy.js";
import { Refusal } from "./refusal.js";
import { python } from "./server.js";

/** @typedef {import("./visit.js").Visit} Visit */

/** The text of the state that a function returned, or null when it keeps the old one. @param {unknown} answer */
function stateOf(answer) {
  const state = typeof answer === "object" && answer !== null && "state" in answer ? answer.state : null;
  if (state === null || state === undefined || state === "") return null;
  if (typeof state !== "string") return JSON.stringify(state);
  try {
    return JSON.stringify(JSON.parse(state));
  } catch {
    throw new Refusal("python-bad-answer", "The function returned a state that is not JSON. The old one is kept.");
  }
}

/**
 * @param {string} work creator/work
 * @param {Visit | null} visit whose state goes along, if the work declares saves
 * @returns {(inputs: unknown) => Promise<unknown>}
 */
export function makeFunction(work, visit) {
  /** @type {Promise<unknown>} */
  let last = Promise.resolve();
  let waiting = 0;

  /** @param {Record<string, unknown>} inputs */
  async function call(inputs) {
    if (!visit || Object.hasOwn(inputs, "state")) return python(work, inputs);
    const { loads } = visit, answer = await python(work, { ...inputs, state: visit.json });
    const state = stateOf(answer);
    // Whoever loaded another save meanwhile does not want the one that the function saw.
    if (state !== null && visit.loads === loads) await visit.keep(state, true);
    return answer;
  }

  return async inputs => {
    if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs)) {
      throw new Refusal("bad-request", "What a function gets is an object.");
    }
    if (waiting >= limits.pythonCallsWaitingMax) throw new Refusal("too-fast", "The function has not answered the calls before this one yet.");
    waiting++;
    const mine = last.then(() => call(/** @type {Record<string, unknown>} */ (inputs)));
    last = mine.catch(() => {}).finally(() => { waiting--; });
    return mine;
  };
}
