// @ts-check
import { mostAtOnce } from '../most-at-once.mjs';
import { say } from '../screen.mjs';

const EXPORTS = 12;
const PERMITS = 3;
/** Without the semaphore more than that run at once practically always; what does not is repeated. */
const UNLIMITED_ATTEMPTS = 5;

/**
 * More exports than may run, on all instances at once.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function exportsScene(fleet) {
  let unlimited = await exportAll(fleet, 'exports-without-limit');
  for (let again = 1; again < UNLIMITED_ATTEMPTS && unlimited.atOnce <= PERMITS; again++) {
    unlimited = await exportAll(fleet, 'exports-without-limit');
  }
  say(`without the semaphore: ${unlimited.done} exports, up to ${unlimited.atOnce} at once`);
  const limited = await exportAll(fleet, 'exports');
  say(`with the semaphore:    ${limited.done} exports, up to ${limited.atOnce} at once`);
  return [
    {
      what: 'Exports at once without the semaphore',
      measured: `${unlimited.atOnce} of ${EXPORTS}`,
      promised: `more than ${PERMITS}`,
    },
    {
      what: 'Exports at once with the semaphore',
      measured: `${limited.atOnce} of ${EXPORTS}`,
      promised: `<= ${PERMITS}`,
      isKept: limited.atOnce <= PERMITS && limited.done === EXPORTS,
    },
  ];
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} path */
async function exportAll(fleet, path) {
  const requests = Array.from({ length: EXPORTS }, (_, i) => fleet.byTurns(i).post(`/${path}`, { customer: `c-${i}` }));
  const answers = await Promise.all(requests);
  const { body: stamps } = await fleet.other().get(`/time-clock/${path}`);
  return { done: answers.filter(({ status }) => status === 201).length, atOnce: mostAtOnce(stamps) };
}
