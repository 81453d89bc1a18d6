import type { Clock } from './clock.js';

/** So far back, and so many at most. */
const RECENT_MS = 10 * 60_000;
const MAX_TIMES = 1_000;

/** Counts how often something happened in the last ten minutes: 1,000 times at most. */
export class RecentTimes {
  readonly #at: number[] = [];

  constructor(private readonly clock: Clock) {}

  add(): void {
    if (this.#at.push(this.clock.now()) > MAX_TIMES) this.#at.shift();
  }

  count(): number {
    const since = this.clock.now() - RECENT_MS;
    return this.#at.filter((at) => at > since).length;
  }
}
