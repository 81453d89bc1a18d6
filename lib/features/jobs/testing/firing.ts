import { entryOf } from '../../../kernel/util/objects.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import type { LockEvent } from '../../../kernel/events/events.js';
import { inRootContext } from '../../../kernel/util/async-contexts.js';
import type { Job } from '../nest/run-job.js';
import { LAST_TICK_KEEP_MS, type Tick } from '../core/job-claims.js';
import type { MemoryServer } from '../../../memory/memory-server.js';
import type { TestFleet } from '../../../testing/fleet/test-fleet.js';
import { RUN_LEASE_MS } from '../../../kernel/api/lock-options.js';
import { createOwnerId } from '../../../kernel/store/ask.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import { SystemRandom } from '../../../kernel/util/clock.js';
import { memoryStores } from '../../../memory/memory-lock-store.js';

/** The reactions of a fleet's applications to one tick of a job. */
export interface FiredJob {
  /** The tick that was fired, like `run.tick`. */
  readonly tick: string;
  /** The `instanceId` of the application that ran it; `undefined` if none did. */
  readonly ranOn: string | undefined;
  /** The result of the job; `undefined` if no application ran it. */
  readonly result: unknown;
  /** The other applications that have the job, and why they did not run the tick. */
  readonly skipped: readonly {
    readonly instanceId: string;
    /**
     * A reason of the event `tickSkipped`, or one of these. `'standsBy'`: the application waits, to run the tick if the
     * running application dies. `'notReached'`: a decorator above the job's own did not call the method. `'closed'`:
     * the application is closing.
     */
    readonly reason: Extract<LockEvent, { type: 'tickSkipped' }>['reason'] | 'standsBy' | 'notReached' | 'closed';
  }[];
}

/** Why an application did not run a tick. */
export type WhySkipped = FiredJob['skipped'][number]['reason'];

export type Ending =
  | { readonly ran: true; readonly result: unknown }
  | { readonly ran: true; readonly error: unknown }
  | { readonly ran: false; readonly reason: WhySkipped }
  | { readonly ran: false; readonly error: unknown };

/** Longer than a test lets pass: a year and a day. */
export const KEEP_MS = 366 * 24 * 60 * 60 * 1_000;

/** Fires a tick on one application, as its timer does. */
export async function fire(service: RedisLockService, name: string, job: Job, tick: string): Promise<Ending> {
  let hasBegun = false;
  let reason: WhySkipped | undefined;
  const stop = service.observe((event) => {
    if (event.type === 'tickSkipped' && event.job === name && event.tick === tick) reason = event.reason;
  });
  const begins = (): void => void (hasBegun = true);
  try {
    // Not in the context of the test, which may hold a lock.
    const call = (): ReturnType<Job['run']> =>
      job.run({ kind: 'tick', tick: { tick, claimTtlMs: KEEP_MS, jitterMs: 0 }, begins });
    const { result, isTaken } = await inRootContext(call);
    if (hasBegun) return { ran: true, result };
    return { ran: false, reason: reason ?? (isTaken ? 'closed' : 'notReached') };
  } catch (error) {
    return { ran: hasBegun, error };
  } finally {
    stop();
  }
}

/** The ticks of a job that a test has fired in a fleet. */
interface FiredTicks {
  readonly texts: Set<string>;
  /** The latest one that was chosen here, in milliseconds since the Unix epoch. */
  last: number;
}

const fired = new WeakMap<TestFleet, Map<string, FiredTicks>>();

/** The ticks of this job that were fired in the fleet. @param id the lock service and the job */
export function firedTicksOf(fleet: TestFleet, id: string): FiredTicks {
  const jobs = entryOf(fired, fleet, () => new Map<string, FiredTicks>());
  return entryOf(jobs, id, () => ({ texts: new Set<string>(), last: -Infinity }));
}

const SECOND_MS = 1_000;

/** The next tick of the job that was not fired yet. A job on a single date has no other one. */
export function nextTick(ticks: FiredTicks, job: Job, wallNow: number): string {
  const { schedule } = job;
  if (schedule) return newOne(ticks, () => nextTime(ticks, schedule()?.after(Math.max(ticks.last, wallNow)), wallNow));
  const { tick, due } = job.tickAt(wallNow);
  if (due) return tick;
  let number = ticks.texts.size;
  return newOne(ticks, () => `${tick}:${++number}`);
}

function newOne({ texts }: FiredTicks, next: () => string): string {
  for (;;) {
    const text = next();
    if (!texts.has(text)) return text;
  }
}

/** A job that is stopped, or that no `ScheduleModule` schedules, has a tick in each second. */
function nextTime(ticks: FiredTicks, due: number | undefined, wallNow: number): string {
  ticks.last = due ?? (Math.floor(Math.max(ticks.last, wallNow) / SECOND_MS) + 1) * SECOND_MS;
  return new Date(ticks.last).toISOString();
}

/** Notes a tick that has run, as the claim of a tick in its time does. */
export function account({ redis, keys, clock }: MemoryServer, resource: string, tick: string): void {
  const at = Date.parse(tick);
  const key = keys.lastTick(resource);
  if (!(at > Number(redis.get(key) ?? 0))) return;
  redis.set(key, at, 'PX', Math.max(0, at - clock.wallNow()) + LAST_TICK_KEEP_MS);
}

/**
 * Instances that no longer live began this tick: the next one that claims it reruns it. No lease has to end
 * first.
 *
 * @param attempt which run the next one is
 * @returns the status of the claim that was refused, if one was
 */
export async function crash(server: MemoryServer, tick: Tick, attempt: number): Promise<string | undefined> {
  const { locks, jobs } = memoryStores({ instanceId: 'crashed', server });
  const returned = { claim: { tick: tick.tick, to: 'returned', claimTtlMs: KEEP_MS } } as const;
  const random = new SystemRandom();
  try {
    let owner: LockOwner | undefined;
    // The last one gives back what the next one runs.
    for (let begun = 1; begun <= attempt; begun++) {
      const takeOver = begun === 1 ? 'nothing' : 'unfinished';
      owner = { resource: tick.resource, id: createOwnerId(locks.clientId, random), mode: 'exclusive' };
      const reply = await jobs.claim(tick, {
        owner,
        leaseMs: RUN_LEASE_MS,
        claimTtlMs: KEEP_MS,
        overlap: 'wait',
        takeOver,
      });
      if (reply.status !== 'granted') {
        if (reply.status === 'claimed') await jobs.end(owner, returned);
        return reply.status;
      }
      await locks.release(owner);
    }
    await jobs.end(owner!, returned);
    return undefined;
  } finally {
    await locks.close();
  }
}
