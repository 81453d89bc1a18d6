import type { BlockedTime } from '../../../../kernel/events/telemetry.js';
import type { LockEventOf } from '../../../../kernel/events/events.js';
import type { LockObservers } from '../../../../kernel/events/observers.js';
import type { Clock } from '../../../../kernel/util/clock.js';
import type { FleetAnswer } from './lock-fleet.js';

/** Counts go back a minute, in parts of this length. */
const PART_MS = 10_000;
const PARTS = 6;
/** Blockers go back ten minutes, in two parts. */
const BLOCKERS_PART_MS = 5 * 60_000;
/** The maximum number of pairs of groups in one part, and in a report. */
const MAX_PAIRS = 500;
const MAX_TOLD = 5;
const MAX_TIMEOUTS = 3;

const COUNTED = ['acquired', 'notAcquired', 'lost'] as const;
type Counted = (typeof COUNTED)[number];
type Counts = Record<Counted, number>;
type CountedBlocker = FleetAnswer['blockers'][number];

interface Part {
  readonly from: number;
  readonly counts: Counts;
  /** Calls by resource. */
  readonly timeouts: Map<string, number>;
}

interface RecentDeps {
  readonly clock: Clock;
  readonly observers: LockObservers;
  /** See `OperatorsView.onBlocked`. */
  readonly onBlocked: (listener: (blocked: BlockedTime) => void) => () => void;
}

/**
 * The recent events of this process. It begins to count with the first question and stops when no question has come for
 * as long as it looks back: so it costs nothing between questions, and it needs no timer.
 */
export class RecentCounts {
  #stop: (() => void) | undefined;
  #startedAt = 0;
  #askedAt = -Infinity;
  #parts: Part[] = [];

  constructor(private readonly deps: RecentDeps) {}

  /** @returns `null` if counting begins only now */
  read(): FleetAnswer['lastMinute'] {
    const now = this.deps.clock.now();
    if (now - this.#askedAt > PART_MS * PARTS) this.stop();
    this.#askedAt = now;
    if (this.#stop === undefined) {
      this.#startedAt = now;
      this.#stop = this.deps.observers.add((event) => this.#count(event), COUNTED);
      return null;
    }
    const sum: Counts = { acquired: 0, notAcquired: 0, lost: 0 };
    let timedOut = 0;
    for (const { counts, timeouts } of this.#recent()) {
      for (const type of COUNTED) sum[type] += counts[type];
      for (const calls of timeouts.values()) timedOut += calls;
    }
    return { forMs: Math.min(now - this.#startedAt, PART_MS * PARTS), ...sum, timedOut };
  }

  /** The resources with the most time-outs. */
  timeouts(): FleetAnswer['timeouts'] {
    const sums = new Map<string, number>();
    for (const { timeouts } of this.#recent()) {
      for (const [resource, calls] of timeouts) sums.set(resource, (sums.get(resource) ?? 0) + calls);
    }
    const all = [...sums].map(([resource, calls]) => ({ resource, calls }));
    return all.sort((a, b) => b.calls - a.calls).slice(0, MAX_TIMEOUTS);
  }

  #recent(): Part[] {
    const since = this.deps.clock.now() - PART_MS * PARTS;
    return this.#parts.filter(({ from }) => from > since);
  }

  #count(event: LockEventOf<Counted>): void {
    const now = this.deps.clock.now();
    if (now - this.#askedAt > PART_MS * PARTS) return this.stop();
    let part = this.#parts.at(-1);
    if (part === undefined || now >= part.from + PART_MS) {
      part = { from: now, counts: { acquired: 0, notAcquired: 0, lost: 0 }, timeouts: new Map() };
      if (this.#parts.push(part) > PARTS) this.#parts.shift();
    }
    part.counts[event.type]++;
    if (event.type !== 'notAcquired' || event.error.code !== 'LOCK_TIMEOUT') return;
    const { timeouts } = part;
    const calls = timeouts.get(event.resource) ?? 0;
    if (calls > 0 || timeouts.size < MAX_PAIRS) timeouts.set(event.resource, calls + 1);
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#parts = [];
  }
}

/** For which groups the calls of this process have waited lately. Counts as {@link RecentCounts} do. */
export class RecentBlockers {
  #stop: (() => void) | undefined;
  #partFrom = 0;
  #askedAt = -Infinity;
  #now = new Map<string, CountedBlocker>();
  #before = new Map<string, CountedBlocker>();

  constructor(private readonly deps: RecentDeps) {}

  read(): readonly CountedBlocker[] {
    const now = this.deps.clock.now();
    if (now - this.#askedAt > 2 * BLOCKERS_PART_MS) this.stop();
    this.#askedAt = now;
    if (this.#stop === undefined) {
      this.#partFrom = now;
      this.#stop = this.deps.onBlocked((blocked) => this.#count(blocked));
    }
    this.#turn(now);
    const sum = new Map(this.#before);
    for (const [key, blocker] of this.#now) sum.set(key, added(sum.get(key), blocker));
    return [...sum.values()].sort((a, b) => b.waitedMs - a.waitedMs).slice(0, MAX_TOLD);
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#now = new Map();
    this.#before = new Map();
  }

  #count({ group: waiter, holderGroup: holder, waitedMs }: BlockedTime): void {
    const now = this.deps.clock.now();
    if (now - this.#askedAt > 2 * BLOCKERS_PART_MS) return this.stop();
    this.#turn(now);
    const key = `${waiter}\n${holder}`;
    const known = this.#now.get(key);
    if (known === undefined && this.#now.size >= MAX_PAIRS) return;
    this.#now.set(key, added(known, { waiter, holder, waitedMs, calls: 1 }));
  }

  #turn(now: number): void {
    if (now < this.#partFrom + BLOCKERS_PART_MS) return;
    this.#before = now < this.#partFrom + 2 * BLOCKERS_PART_MS ? this.#now : new Map();
    this.#now = new Map();
    this.#partFrom = now;
  }
}

function added(
  before: CountedBlocker | undefined,
  { waiter, holder, waitedMs, calls }: CountedBlocker,
): CountedBlocker {
  if (before === undefined) return { waiter, holder, waitedMs, calls };
  return { waiter, holder, waitedMs: before.waitedMs + waitedMs, calls: before.calls + calls };
}
