import { LAST_TICK_KEEP_MS } from '../../core/store/job-claims.js';
import type { MemoryServer } from '../../memory/memory-server.js';
import type { Job } from '../../nest/schedule/run-job.js';
import type { TestFleet } from '../fleet/test-fleet.js';

/** The ticks of a job that a test has fired in a fleet. */
interface FiredTicks {
  readonly texts: Set<string>;
  /** The latest one that was chosen here, in milliseconds since the Unix epoch. */
  last: number;
}

const fired = new WeakMap<TestFleet, Map<string, FiredTicks>>();

/** The ticks of this job that were fired in the fleet. @param id the lock service and the job */
export function firedTicksOf(fleet: TestFleet, id: string): FiredTicks {
  let jobs = fired.get(fleet);
  if (jobs === undefined) fired.set(fleet, (jobs = new Map()));
  let ticks = jobs.get(id);
  if (ticks === undefined) jobs.set(id, (ticks = { texts: new Set(), last: -Infinity }));
  return ticks;
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
