// @ts-check
import { say } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

const ATTEMPTS = 5;

/** @typedef {{ token: number, closedBy: string }} Closing */

/**
 * The holder of a lock is stopped, its lease ends, another one does the work, and the first one goes on where it was.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function pauseScene(fleet) {
  const sleeper = fleet.other();
  const other = fleet.other(sleeper);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const staleClosing = sleeper.post('/ledger/closings');
    if (!(await pauseWhileItHolds(sleeper, other, staleClosing))) continue;
    say(`${sleeper.name} stands still (SIGSTOP) while it closes the books`);
    const closing = await other.post('/ledger/closings');
    say(`${other.name} has waited for the lease to end, and closes them, with token ${closing.body.token}`);
    sleeper.resume();
    const stale = await staleClosing;
    /** @type {Closing[]} */
    const closings = (await other.get('/ledger')).body.closings;
    if (stale.status === 201 && isInOrder(closings)) {
      // It was stopped after its write; or before it knew of its lease, and then it got a new one.
      say(`${sleeper.name} was stopped at a harmless moment; once more`);
      continue;
    }
    say(
      `${sleeper.name} goes on (SIGCONT) and writes with its older token: ${stale.status} ${stale.body.message ?? ''}`,
    );
    const isRefused = stale.status === 409 && closing.status === 201 && isInOrder(closings);
    return [
      {
        what: 'Stale write of a paused holder',
        measured: isRefused ? 'refused' : 'written',
        promised: 'refused',
        isKept: isRefused,
      },
    ];
  }
  throw new Error('The books were always closed before the process could be paused');
}

/**
 * @param {import('../shop-process.mjs').ShopProcess} sleeper
 * @param {import('../shop-process.mjs').ShopProcess} other
 * @param {Promise<unknown>} work
 * @returns {Promise<boolean>} false: the work was done before
 */
async function pauseWhileItHolds(sleeper, other, work) {
  let isDone = false;
  void work.finally(() => (isDone = true));
  await waitUntil(`${sleeper.name} holds the lock of the books`, async () => {
    /** @type {import('nestjs-redis-lock').LockState} */
    const { holders } = (await other.get('/ledger')).body.lock;
    return isDone || holders.some(({ instanceId }) => instanceId.startsWith(`${sleeper.name}:`));
  });
  if (!isDone) sleeper.pause();
  return !isDone;
}

/** Whether no closing was written after one with a larger token. */
function isInOrder(/** @type {Closing[]} */ closings) {
  return closings.every(({ token }, i) => i === 0 || token > (closings[i - 1]?.token ?? 0));
}
