import type { LockEvent } from '../../../lib/kernel/events/events.js';
import type { LockObservers } from '../../../lib/kernel/events/observers.js';

/**
 * A metric computed from the events alone, as in docs/reference/events.md: leases held, and waiting calls. By service,
 * mode and group, because a count that goes up in one series and down in another is wrong in both.
 */
export class EventCounts {
  readonly #counts = new Map<string, number>();
  /** The number of leases and of waits that have begun. */
  readonly begun = { held: 0, waiting: 0 };

  constructor(observers: LockObservers) {
    observers.add((event) => this.#count(event));
  }

  /** Impossible counts, collected because an observer cannot throw. */
  readonly wrong: string[] = [];

  /** Counts that are not 0. */
  get left(): Record<string, number> {
    return Object.fromEntries([...this.#counts].filter(([, count]) => count !== 0));
  }

  #count(event: LockEvent): void {
    switch (event.type) {
      case 'waiting':
        return this.#add('waiting', event, 1);
      case 'notAcquired':
        if (!(event.waitedMs >= 0)) this.wrong.push(`waitedMs of ${event.type} is ${event.waitedMs}`);
        if (event.hasWaited) this.#add('waiting', event, -1);
        return;
      case 'acquired':
        if (event.hasWaited) this.#add('waiting', event, -1);
        return this.#add('held', event, 1);
      case 'released':
      case 'lost':
      case 'leaseAbandoned':
        if (!(event.heldMs >= 0)) this.wrong.push(`heldMs of ${event.type} is ${event.heldMs}`);
        return this.#add('held', event, -1);
      case 'releaseFailed':
        if (event.isEnd) this.#add('held', event, -1);
    }
  }

  #add(what: 'held' | 'waiting', { service, mode, group }: Extract<LockEvent, { mode: string }>, by: 1 | -1): void {
    if (by === 1) this.begun[what]++;
    const series = `${what} ${service} ${mode} ${group}`;
    const count = (this.#counts.get(series) ?? 0) + by;
    if (count < 0) this.wrong.push(`${series} is ${count}`);
    this.#counts.set(series, count);
  }
}
