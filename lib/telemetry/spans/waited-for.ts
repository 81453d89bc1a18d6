import type { Holder } from '../../core/api/holder.js';

/** How many holders a span names. A call that waits for long may have seen thousands. */
const MOST = 8;
/** How many are remembered, to choose from. */
const REMEMBERED = 32;

/** A holder that a call has waited for, and for how long. */
export interface Awaited {
  readonly holder: Holder;
  readonly waitedMs: number;
}

/**
 * For which holders a call has waited. Nothing is asked for it: it is worked out from the answers that name a holder,
 * and for how long that one has had the lock.
 */
export class WaitedFor {
  readonly #waitedMs = new Map<string, { holder: Holder; waitedMs: number }>();
  /** The holders that were seen last. */
  #last: readonly string[] = [];
  #lastAt = 0;

  /** These holders have the lock now. @param now how long ago the call began, in milliseconds */
  see(holders: readonly Holder[], now: number): void {
    if (holders.length === 0) return;
    const keys = holders.slice(0, MOST).map(keyOf);
    // Before that, those had it that were seen before.
    const began = Math.min(now, Math.max(this.#lastAt, now - longestOf(holders)));
    this.#charge(began);
    for (const [index, key] of keys.entries()) this.#remember(key, holders[index]!, now - began);
    this.#last = keys;
    this.#lastAt = now;
  }

  /** The wait is over. @returns those that the call has waited for, the longest first */
  end(now: number): readonly Awaited[] {
    this.#charge(now);
    return [...this.#waitedMs.values()].sort((a, b) => b.waitedMs - a.waitedMs).slice(0, MOST);
  }

  #charge(until: number): void {
    const waitedMs = Math.max(0, until - this.#lastAt);
    for (const key of this.#last) {
      const known = this.#waitedMs.get(key);
      if (known) known.waitedMs += waitedMs;
    }
  }

  #remember(key: string, holder: Holder, waitedMs: number): void {
    const known = this.#waitedMs.get(key);
    if (known) {
      known.waitedMs += waitedMs;
      known.holder = holder;
      return;
    }
    this.#waitedMs.set(key, { holder, waitedMs });
    if (this.#waitedMs.size <= REMEMBERED) return;
    const [shortest] = [...this.#waitedMs]
      .filter(([each]) => each !== key)
      .sort(([, a], [, b]) => a.waitedMs - b.waitedMs);
    this.#waitedMs.delete(shortest![0]);
  }
}

function longestOf(holders: readonly Holder[]): number {
  return holders.reduce((longest, { heldMs }) => (heldMs > longest ? heldMs : longest), 0);
}

/** Leases that one process passes on in memory have tokens of their own. */
function keyOf({ instanceId, fencingToken }: Holder): string {
  return `${fencingToken} ${instanceId}`;
}
