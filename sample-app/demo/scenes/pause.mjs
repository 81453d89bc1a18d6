// @ts-check
import { say } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

const ATTEMPTS = 5;

/** @typedef {{ token: number, closedBy: string }} Closing */

/**
 * Stops the holder of a lock between its last check and its COMMIT until its lease has ended and another one has
 * committed, and then resumes it.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function pauseScene(fleet) {
  const sleeper = fleet.other();
  const other = fleet.other(sleeper);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const staleClosing = sleeper.post('/ledger/closings');
    if (!(await pauseInTheMiddle(sleeper, staleClosing))) continue;
    say(`${sleeper.name} stands still (SIGSTOP) between its last check of the lease and its COMMIT`);
    const closing = await other.post('/ledger/closings');
    say(`${other.name} has waited for the lease to end, and commits its closing, with token ${closing.body.token}`);
    sleeper.resume();
    const stale = await staleClosing;
    /** @type {Closing[]} */
    const closings = (await other.get('/ledger')).body.closings;
    const isKept = isInOrder(closings);
    const isRefused = stale.status === 409 && stale.body.error === 'StaleFencingTokenError';
    if (isKept && (!isRefused || closing.status !== 201)) {
      // It was stopped after its write; or between the grant and its work: then it takes a new lease, or does not begin.
      say(`${sleeper.name} was stopped at a harmless moment (${stale.status}, ${closing.status}); once more`);
      continue;
    }
    const [refusal] = String(stale.body.message).split('. ');
    say(`${sleeper.name} goes on (SIGCONT), and its transaction has the older token: ${stale.status} ${refusal}`);
    return [
      {
        what: 'Stale COMMIT of a paused holder',
        measured: isKept ? 'refused' : 'committed',
        promised: 'refused',
        isKept,
      },
    ];
  }
  throw new Error('The process was never stopped in the middle of its work');
}

/**
 * The sleeper is asked itself: Redis has granted the lock before the sleeper has read that.
 *
 * @param {import('../shop-process.mjs').ShopProcess} sleeper
 * @param {Promise<unknown>} work
 * @returns {Promise<boolean>} false: the work was done before
 */
async function pauseInTheMiddle(sleeper, work) {
  let isDone = false;
  void work.finally(() => (isDone = true)).catch(() => {});
  await waitUntil(`${sleeper.name} holds the lock of the books`, async () => {
    /** @type {import('nestjs-redis-lock').LockState} */
    const { holders } = (await sleeper.get('/ledger')).body.lock;
    return isDone || holders.some(({ instanceId }) => instanceId.startsWith(`${sleeper.name}:`));
  });
  if (!isDone) sleeper.pause();
  return !isDone;
}

/** Returns true if no closing was written after one with a larger token. */
function isInOrder(/** @type {Closing[]} */ closings) {
  return closings.every(({ token }, i) => i === 0 || token > (closings[i - 1]?.token ?? 0));
}
