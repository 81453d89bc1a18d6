import type { OperatorRequests } from '../../features/jobs/core/operator-requests.js';
import { SYSTEM_CLOCK } from '../../kernel/util/clock.js';
import { longDuration } from '../../kernel/util/durations.js';
import { pause } from '../../kernel/util/promises.js';
import { quote, quoteSome } from '../../kernel/util/quoted.js';

/** Time that instances have to take a request, and the intervals of checks and of repeated notifications. */
const TAKEN_WITHIN_MS = 5_000;
const LOOK_MS = 100;
const TELL_AGAIN_MS = 1_000;

/**
 * Sends a request to run a job, until an instance has taken it. After five seconds it is taken back, so none will.
 *
 * @throws LockUnavailableError
 */
export async function untilTaken(
  requests: OperatorRequests,
  asked: ReturnType<OperatorRequests['create']>,
  signal?: AbortSignal,
): ReturnType<OperatorRequests['read']> {
  const since = performance.now();
  let state = await requests.tell(asked);
  for (let toldAt = since; state.state === 'asked';) {
    await pause(SYSTEM_CLOCK, LOOK_MS, signal);
    const now = performance.now();
    if (signal?.aborted || now - since >= TAKEN_WITHIN_MS) return requests.withdraw(asked);
    const isTold = now - toldAt < TELL_AGAIN_MS;
    if (!isTold) toldAt = now;
    state = await (isTold ? requests.read(asked) : requests.tell(asked));
  }
  return state;
}

/** Returns why no instance has taken it. @param instances the instances known to have the job */
export function notTaken(job: string, instances: readonly { readonly instanceId: string }[]): string {
  const seen = instances.map(({ instanceId }) => instanceId);
  const where =
    seen.length === 0 ? 'No instance has the job now' : `Instances last seen with the job: ${quoteSome(seen)}`;
  return (
    `No instance accepted the request to run the job ${quote(job)} within ${longDuration(TAKEN_WITHIN_MS)}. The request ` +
    `was withdrawn, so it does not start a run later. ${where}. An instance cannot accept requests if it is frozen, ` +
    'gets no messages from Redis, or runs an older version of nestjs-redis-lock.'
  );
}
