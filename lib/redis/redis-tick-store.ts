import type { LockOwner } from '../core/store/lock-store.js';
import {
  type ClaimChange,
  type TickNode,
  LAST_TICK_KEEP_MS,
  type TickDue,
  type Tick,
  type TickClaim,
  type TickStore,
  type TickReply,
} from '../core/store/tick-store.js';
import { sealOfOwner } from './grant-seal.js';
import type { RedisLockStore } from './redis-lock-store.js';
import { CLAIM_TICK, type ClaimReply, EXCHANGE_CLAIM, FINISH_TICK } from './script/scripts.js';

/**
 * Claims of ticks: one key per tick, and the last tick of each job, beside the job's lock. They expire by themselves.
 */
export class RedisTickStore implements TickStore, TickNode {
  constructor(private readonly store: RedisLockStore) {}

  async claim({ resource, tick }: Tick, claim: TickClaim): Promise<TickReply> {
    const { keys } = this.store;
    const { owner, leaseMs, keepMs, overlap, takeOver, due } = claim;
    const lock = keys.lock(resource);
    const [status, value, flag, text] = await this.store.run<ClaimReply>(
      CLAIM_TICK,
      [lock, keys.tick(resource, tick), keys.fence(lock), keys.lastTick(resource)],
      [owner.id, leaseMs, keepMs, overlap, takeOver, ...dueArgs(due)],
    );
    switch (status) {
      case 'granted':
        return { status, fencingToken: value, rerun: flag === 1 };
      case 'claimed':
        return { status, ttlMs: value };
      case 'taken':
        return { status, ttlMs: value, isBegun: flag === 1 };
      case 'late':
      case 'early':
        return { status, lateMs: value };
      case 'paused':
        return { status, ...(text && { by: text }), ...(value > 0 && { until: value }) };
      case 'gap':
        return { status, last: value };
      default:
        return { status };
    }
  }

  finish(tick: Tick, owner: LockOwner, keepMs: number): Promise<void> {
    return this.#end(tick, owner, keepMs, 'finished');
  }

  giveBack(tick: Tick, owner: LockOwner, keepMs: number): Promise<void> {
    return this.#end(tick, owner, keepMs, 'returned');
  }

  async exchange({ resource, tick }: Tick, change: ClaimChange): Promise<string | null> {
    const { keys } = this.store;
    const { owner, to = '', from = '', force, drop = '', keepMs = '', due, isJudged } = change;
    const standing = await this.store.run<string | null>(
      EXCHANGE_CLAIM,
      [keys.tick(resource, tick), keys.lastTick(resource)],
      [to, from, force ? 1 : 0, drop, keepMs, ...dueArgs(due), due && isJudged ? 1 : 0],
    );
    const seal = sealOfOwner(owner);
    return standing?.startsWith(seal) ? owner + standing.slice(seal.length) : standing;
  }

  async #end({ resource, tick }: Tick, { id }: LockOwner, keepMs: number, state: string): Promise<void> {
    await this.store.run(FINISH_TICK, [this.store.keys.tick(resource, tick)], [id, keepMs, state]);
  }
}

function dueArgs(due: TickDue | undefined): readonly (string | number)[] {
  return due ? [due.at, due.earlyMs, due.lateMs, LAST_TICK_KEEP_MS] : ['', '', '', ''];
}
