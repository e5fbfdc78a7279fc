// What a work, or a player, is told when something cannot be done.

/** A refusal: a type that code can compare, a sentence that a person can be shown, and details by name. */
export class Refusal extends Error {
  /** @param {string} type @param {string} message @param {Record<string, unknown>} [details] */
  constructor(type, message, details = {}) {
    super(message);
    this.type = type;
    this.details = details;
  }
}
