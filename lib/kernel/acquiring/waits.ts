import { JOB_PREFIX, LEADER_PREFIX } from '../api/resource.js';

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
