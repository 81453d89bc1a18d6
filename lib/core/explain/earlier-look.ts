import { fencingTickOf } from '../store/fencing-token.js';
import type { Holder } from '../api/holder.js';
import type { LockState, LockWaiter } from '../store/lock-state.js';

/** Two servers, as a quorum asks, do not measure the same. */
const SLACK_MS = 50;

/** What happened to a lease between two looks. */
export interface BetweenLooks {
  readonly what: 'renewed' | 'notRenewed' | 'granted';
  /** How far apart they were: at least, and at most. The clock of this process cannot tell when Redis read its own. */
  readonly leastMs: number;
  readonly mostMs: number;
}

/** A look before this one. Two of them show which process lives, however long its lease is. */
export class EarlierLook {
  constructor(
    private readonly state: LockState,
    private readonly leastMs: number,
    private readonly mostMs: number,
  ) {}

  between({ instanceId, fencingToken, ttlMs }: Holder): BetweenLooks {
    const { leastMs, mostMs } = this;
    const tick = fencingTickOf(fencingToken);
    const before = this.state.holders.find(
      (each) => each.instanceId === instanceId && fencingTickOf(each.fencingToken) === tick,
    );
    const what = !before ? 'granted' : this.#hasGoneUp(before.ttlMs, ttlMs) ? 'renewed' : 'notRenewed';
    return { what, leastMs, mostMs };
  }

  /** Whether the process of this waiter has joined the queue since, or has kept a place there. */
  isAlive({ instanceId, placeMs = 0 }: LockWaiter): boolean {
    const before = this.state.waiters.filter((each) => each.instanceId === instanceId);
    return this.#hasGoneUp(Math.max(...before.map((each) => each.placeMs ?? 0)), placeMs);
  }

  #hasGoneUp(beforeMs: number, nowMs: number): boolean {
    return nowMs > beforeMs - this.leastMs + SLACK_MS;
  }
}
