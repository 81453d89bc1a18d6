import type { Random } from '../../kernel/util/clock.js';

/** Returns the same numbers for the same seed (mulberry32). */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed = 1) {
    this.#state = seed;
  }

  /** Starts with `secret`, so that a test can search for it in places where it must not be. */
  id(): string {
    return `secret${Math.floor(this.fraction() * 2 ** 32).toString(36)}`;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}
