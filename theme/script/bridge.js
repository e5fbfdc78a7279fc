// The host side of the bridge: JSON-RPC 2.0, as text, over a port that the frame asked for. It answers only what the
// work declared, within the limits of the policy, and treats everything that arrives as hostile.

import { limits, methods } from "./policy.js";
import { Refusal } from "./refusal.js";

/** Error codes of JSON-RPC by type; every other type has the one that is left to applications. */
const CODES = new Map([["bad-request", -32600], ["unknown-method", -32601]]);
const OTHER_CODE = -32000;

/** @typedef {(params: Record<string, unknown>) => unknown} Handler answers, or throws a Refusal */

export class Bridge {
  /** @type {MessagePort | null} */
  #port = null;
  #tokens = limits.messagesBurstMax;
  #filled = performance.now();
  #refused = 0;
  #closed = false;
  #capabilities;
  #handlers;
  #flooded;

  /**
   * @param {string[]} capabilities what the work declares
   * @param {Record<string, Handler>} handlers by method
   * @param {() => void} flooded called once, when the work has sent far too much
   */
  constructor(capabilities, handlers, flooded) {
    this.#capabilities = capabilities;
    this.#handlers = handlers;
    this.#flooded = flooded;
  }

  /** Takes a message of the frame's window; the caller has compared its source. @param {MessageEvent} event */
  greet(event) {
    if (!this.#admit() || event.data?.tf !== "hello" || event.data.version !== 1) return;
    this.#port?.close(); // a work that reloaded itself greets anew
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.onmessage = message => { this.#receive(port1, message.data); };
    const answer = { tf: "port", version: 1, capabilities: this.#capabilities };
    /** @type {Window} */ (event.source).postMessage(answer, "*", [port2]);
  }

  /** Tells the work something it did not ask for. @param {string} method @param {object} params */
  notify(method, params) {
    this.#port?.postMessage(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  close() {
    this.#closed = true;
    this.#port?.close();
    this.#port = null;
  }

  /** Whether one more message is within the rate. */
  #admit() {
    if (this.#closed) return false;
    const now = performance.now();
    this.#tokens = Math.min(limits.messagesBurstMax, this.#tokens + (now - this.#filled) / 1000 * limits.messagesPerSecondMax);
    this.#filled = now;
    if (this.#tokens >= 1) {
      this.#tokens--;
      return true;
    }
    if (++this.#refused > limits.messagesRefusedMax) {
      this.close();
      this.#flooded();
    }
    return false;
  }

  /** @param {MessagePort} port @param {unknown} data */
  async #receive(port, data) {
    const admitted = this.#admit();
    if (this.#closed) return;
    /** @type {string | number | null} */
    let id = null;
    try {
      if (typeof data !== "string") throw new Refusal("bad-request", "A message is JSON-RPC 2.0 as a text.");
      if (!admitted) {
        throw new Refusal("too-fast", `At most ${limits.messagesPerSecondMax} messages a second are answered.`);
      }
      if (data.length > limits.messageBytesMax || new TextEncoder().encode(data).length > limits.messageBytesMax) {
        throw new Refusal("too-large", `A message may have at most ${limits.messageBytesMax} bytes.`);
      }
      const request = parse(data);
      id = request.id;
      const result = await this.#handler(request.method)(request.params);
      if (id !== null) port.postMessage(JSON.stringify({ jsonrpc: "2.0", id, result: result === undefined ? {} : result }));
    } catch (problem) {
      const { type, message, details } = problem instanceof Refusal ? problem
        : new Refusal("unavailable", "Something went wrong in the page around the work.");
      // What comes too fast is not answered one for one: the answers would be a flood of our own.
      if (!admitted && this.#refused % limits.messagesBurstMax !== 1) return;
      const error = { code: CODES.get(type) ?? OTHER_CODE, message, data: { ...details, type } };
      port.postMessage(JSON.stringify({ jsonrpc: "2.0", id, error }));
    }
  }

  /** @param {string} method @returns {Handler} */
  #handler(method) {
    const capability = Object.keys(methods).find(key => methods[key].includes(method));
    if (capability === undefined) throw new Refusal("unknown-method", `There is no method ${JSON.stringify(method.slice(0, 60))}.`);
    if (!this.#capabilities.includes(capability)) {
      throw new Refusal("undeclared", `This work does not declare ${capability}, so ${method} is refused.`);
    }
    return this.#handlers[method] ?? (() => { throw new Refusal("unavailable", `${method} is not open yet.`); });
  }
}

/**
 * Reads a request. A notification has no id.
 * @param {string} text
 * @returns {{id: string | number | null, method: string, params: Record<string, unknown>}}
 */
function parse(text) {
  /** @type {any} */
  let request;
  try {
    request = JSON.parse(text);
  } catch {
    throw new Refusal("bad-request", "The message is not JSON.");
  }
  const { jsonrpc, id = null, method, params = {} } = request ?? {};
  const known = id === null || typeof id === "string" && id.length <= 100 || typeof id === "number";
  if (jsonrpc !== "2.0" || typeof method !== "string" || !known || typeof params !== "object" || params === null) {
    throw new Refusal("bad-request", "The message is not a JSON-RPC 2.0 request.");
  }
  return { id, method, params };
}
