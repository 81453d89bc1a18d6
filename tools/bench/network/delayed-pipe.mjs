/** A timer is late by up to this. The rest is waited for without one. */
const TIMER_MS = 1.5;

/** Passes chunks on in their order, each so many milliseconds after it came. Half a millisecond is kept, too. */
export class DelayedPipe {
  #queue = [];
  #isWaiting = false;

  /** @param {(chunk: any) => void} arrive called at once, within `push`, where there is no delay */
  constructor(delayMs, arrive) {
    this.delayMs = delayMs;
    this.arrive = arrive;
  }

  push(chunk) {
    if (this.delayMs === 0) return this.arrive(chunk);
    this.#queue.push({ at: performance.now() + this.delayMs, chunk });
    if (!this.#isWaiting) this.#wait();
  }

  /** What is under way never arrives. */
  clear() {
    this.#queue = [];
  }

  #wait() {
    this.#isWaiting = true;
    const leftMs = this.#queue[0].at - performance.now();
    if (leftMs > TIMER_MS) setTimeout(() => this.#drain(), leftMs - TIMER_MS);
    else setImmediate(() => this.#drain());
  }

  #drain() {
    this.#isWaiting = false;
    while (this.#queue.length > 0 && this.#queue[0].at <= performance.now()) this.arrive(this.#queue.shift().chunk);
    if (this.#queue.length > 0) this.#wait();
  }
}
