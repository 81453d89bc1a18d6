import type { AttemptLog } from '../store/attempts.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import { LEADER_PREFIX } from '../api/resource.js';
import type { Runtime } from '../store/runtime.js';

/** The observers are told of a call that has waited for this long. */
export const LONG_WAIT_MS = 5_000;

/**
 * Whether calls for this resource are expected to wait: candidates of a leadership wait for as long as another leads.
 */
export function isExpectedToWait(resource: string): boolean {
  return resource.startsWith(LEADER_PREFIX);
}

/**
 * Tells the observers that a call has waited for long, and for which holders. Where Redis cannot be asked, that is what
 * the call waits for, and other events tell it.
 */
export function tellOfLongWait(
  { observers }: Pick<Runtime, 'observers'>,
  resource: string,
  { mode }: Pick<ResolvedLockOptions, 'mode'>,
  waitedMs: number,
  log: AttemptLog,
  now: number,
): void {
  if (log.last !== 'busy' || isExpectedToWait(resource)) return;
  const { list: holders, count: holderCount } = log.holders(now);
  observers.emit({ type: 'waiting', resource, mode, waitedMs, holders, holderCount });
}
