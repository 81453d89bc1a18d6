import { JOB_PREFIX, LEADER_PREFIX } from '../api/resource.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Holders } from '../api/holder.js';
import type { AttemptLog } from '../store/ask.js';
import type { Hold } from '../holding/hold.js';
import type { Runtime } from '../holding/runtime.js';
import type { Origin } from '../util/call-site.js';

export interface WaitingNow {
  readonly call: object;
  readonly resource: string;
  readonly options: ResolvedLockOptions;
  readonly startedAt: number;
  readonly holds: readonly Hold[];
  /** Known for some calls inside of work under a lease. */
  readonly origin?: Origin | undefined;
  /** Its place in the store's queue, if known. */
  readonly place?: number | undefined;
}

/** Observers are notified of a call that has waited for this long. */
export const LONG_WAIT_MS = 5_000;

/** Candidates of a leadership are expected to wait for as long as another leads. */
export function isExpectedToWait(resource: string): boolean {
  return resource.startsWith(LEADER_PREFIX);
}

/** Returns true if waits for this resource are reported: a leadership or a job has other events. */
export function reportsWaits(resource: string): boolean {
  return !isExpectedToWait(resource) && !resource.startsWith(JOB_PREFIX);
}

export function emitWaiting(
  { observers }: Pick<Runtime, 'observers'>,
  resource: string,
  options: ResolvedLockOptions,
  seen: Holders,
  place?: number,
): void {
  const call = observers.describeCall(resource, options);
  observers.emit({ type: 'waiting', ...call, ...seen, ...(place !== undefined && { place }) });
}

/**
 * Reports a long wait and its holders. If Redis is unreachable, the call waits for that, and other events report it.
 */
export function emitWaitingLong(
  { observers }: Pick<Runtime, 'observers'>,
  resource: string,
  options: ResolvedLockOptions,
  waitedMs: number,
  log: AttemptLog,
  now: number,
  place?: number,
): void {
  if (log.last !== 'busy' || isExpectedToWait(resource) || !observers.wants('waitingLong')) return;
  const call = observers.describeCall(resource, options);
  observers.emit({
    type: 'waitingLong',
    ...call,
    waitedMs,
    ...log.holders(now),
    ...(place !== undefined && { place }),
  });
}

interface EndedWait {
  readonly since: number;
  readonly hasWaited: boolean;
}

const endedWaits = new WeakMap<object, EndedWait>();

/** Stores the facts for observers beside the error of the call. */
export function noteWait(error: unknown, since: number, hasWaited: boolean): void {
  if (error instanceof Error) endedWaits.set(error, { since, hasWaited });
}

export function waitBefore(error: unknown): EndedWait | undefined {
  return endedWaits.get(error as object);
}
