import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fencingTickOf } from '../../../lib/kernel/store/fencing-token.js';
import type { LockInstance } from '../redis/lock-instances.js';

/** Runs work under the lock of one resource and records the order, across instances. */
export class CriticalSections {
  readonly tokens: number[] = [];
  readonly #instances: LockInstance[] = [];
  readonly #leases = new Set<Lease>();
  #overlaps = 0;

  constructor(readonly resource = 'x') {}

  /** Waits for the lock with patience, and runs the work under it. */
  call(instance: LockInstance, options?: LockOptions, work?: (lease: Lease) => unknown): Promise<void> {
    return instance.locks.using(this.resource, { waitMs: 60_000, ...options }, (lease) =>
      this.enter(instance, lease, work),
    );
  }

  /** So many of them at once. */
  calls(count: number, instance: LockInstance, options?: LockOptions, work?: (lease: Lease) => unknown) {
    return Promise.all(Array.from({ length: count }, () => this.call(instance, options, work)));
  }

  /** A section under a lease that was granted elsewhere. */
  async enter(instance: LockInstance, lease: Lease, work: (lease: Lease) => unknown = nothing): Promise<void> {
    // A lease that was lost is no harm, and none that was lost comes back: what is valid together is so at an entry.
    if (lease.isHeld() && [...this.#leases].some((other) => other.isHeld())) this.#overlaps++;
    this.#leases.add(lease);
    this.#instances.push(instance);
    this.tokens.push(lease.fencingToken);
    try {
      await work(lease);
    } finally {
      this.#leases.delete(lease);
    }
  }

  /** The order of the runs, as indexes into this list of instances. */
  order(...instances: LockInstance[]): number[] {
    return this.#instances.map((instance) => instances.indexOf(instance));
  }

  /** So many ran, one at a time, with tokens that grow. */
  expectSound(count: number): void {
    expect({ overlaps: this.#overlaps, sections: this.tokens.length }).toEqual({ overlaps: 0, sections: count });
    expect(this.tokens.filter((token, index) => index > 0 && token <= this.tokens[index - 1]!)).toEqual([]);
  }

  /** The number of consecutive leases that shared each grant by Redis. */
  rows(): number[] {
    const rows = new Map<number, number>();
    for (const token of this.tokens) {
      const tick = fencingTickOf(token);
      rows.set(tick, (rows.get(tick) ?? 0) + 1);
    }
    return [...rows.values()];
  }
}

async function nothing(): Promise<void> {
  await new Promise(setImmediate);
}
