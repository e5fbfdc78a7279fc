// How often something may happen: so many times a minute, evenly refilled.

export class Pace {
  #perMinute;
  #left;
  #filled = performance.now();

  /** @param {number} perMinute */
  constructor(perMinute) {
    this.#perMinute = this.#left = perMinute;
  }

  #fill() {
    const now = performance.now();
    this.#left = Math.min(this.#perMinute, this.#left + (now - this.#filled) / 60_000 * this.#perMinute);
    this.#filled = now;
  }

  /** Whether it may happen now; if so, it counts. */
  take() {
    this.#fill();
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }

  /** Counts one, and resolves when it may happen. */
  async wait() {
    this.#fill();
    this.#left--;
    if (this.#left < 0) await new Promise(resolve => { setTimeout(resolve, -this.#left / this.#perMinute * 60_000); });
  }
}
