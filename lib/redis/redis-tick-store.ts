import { catchUpOf, JOB_KEEP_MS, type JobNote } from '../core/store/job-store.js';
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
import { encodeField, readSpan } from './job-entries.js';
import type { Keys } from './keys.js';
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
    const { owner, leaseMs, keepMs, overlap, takeOver, due, note } = claim;
    const lock = keys.lock(resource);
    const known = [lock, keys.tick(resource, tick), keys.fence(lock), keys.lastTick(resource)];
    const args = [owner.id, leaseMs, keepMs, overlap, takeOver, ...dueArgs(due)];
    const [status, value, flag, text, isNew] = await this.store.run<ClaimReply>(
      CLAIM_TICK,
      note ? [...known, ...jobKeys(keys, resource)] : known,
      note ? [...args, ...noteArgs(note, tick)] : args,
    );
    switch (status) {
      case 'granted':
        return {
          status,
          fencingToken: value,
          rerun: flag === 1,
          ...(text && { missed: readSpan(text) }),
          ...(isNew === 1 && { isNew: true }),
        };
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
        return { status, last: value, lateMs: flag };
      default:
        return { status };
    }
  }

  async finish({ resource, tick }: Tick, { id }: LockOwner, keepMs: number): Promise<void> {
    await this.store.run(FINISH_TICK, [this.store.keys.tick(resource, tick)], [id, keepMs, 'finished']);
  }

  async giveBack({ resource, tick }: Tick, { id }: LockOwner, keepMs: number): Promise<void> {
    const { keys } = this.store;
    const own = [keys.tick(resource, tick), keys.jobRuns(resource), keys.jobRecord(resource)];
    await this.store.run(FINISH_TICK, own, [id, keepMs, 'returned', encodeField(tick), catchUpOf(tick) ?? '']);
  }

  async exchange({ resource, tick }: Tick, change: ClaimChange): Promise<string | null> {
    const { keys } = this.store;
    const { owner, to = '', from = '', force, drop = '', keepMs = '', mostMs = '', due, isJudged } = change;
    const standing = await this.store.run<string | null>(
      EXCHANGE_CLAIM,
      [keys.tick(resource, tick), keys.lastTick(resource)],
      [to, from, force ? 1 : 0, drop, keepMs, ...dueArgs(due), due && isJudged ? 1 : 0, mostMs],
    );
    const seal = sealOfOwner(owner);
    return standing?.startsWith(seal) ? owner + standing.slice(seal.length) : standing;
  }
}

function dueArgs(due: TickDue | undefined): readonly (string | number)[] {
  return due ? [due.at, due.earlyMs, due.lateMs, LAST_TICK_KEEP_MS] : ['', '', '', ''];
}

function jobKeys(keys: Keys, resource: string): string[] {
  return [keys.jobRuns(resource), keys.jobRecord(resource), keys.jobPause(resource), keys.jobInstances(resource)];
}

function noteArgs({ kind, historySize, schedule, previous, next }: JobNote, tick: string): (string | number)[] {
  const before = kind === 'catchUp' ? catchUpOf(tick) : schedule === undefined ? undefined : previous;
  return [kind, historySize, schedule ?? '', before ?? '', next ?? '', JOB_KEEP_MS, encodeField(tick)];
}
