// @ts-check
import { say } from '../screen.mjs';

const FILES = 3;
const ORDERS = 20;
/** Without the handover it goes wrong practically always; what does not is repeated. */
const UNLOCKED_ATTEMPTS = 5;

/** @typedef {import('../../src/imports/import-register.js').Finished} Finished */

/**
 * The files come in at shop-1, which locks the batch and puts them into a queue. The others book them. Whoever wants the total waits for
 * a latch.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function importScene(fleet) {
  let unlocked = await importBatch(fleet, 'loose-1', '/without-handover');
  for (let again = 2; again <= UNLOCKED_ATTEMPTS && unlocked.total === FILES * ORDERS; again++) {
    unlocked = await importBatch(fleet, `loose-${again}`, '/without-handover');
  }
  say(`a lock that ends at the queue: ${unlocked.total} of ${FILES * ORDERS} orders are booked`);
  const handedOn = await importBatch(fleet, 'handed-on');
  say(`a lock that is handed on:      ${handedOn.total} of ${FILES * ORDERS}`);
  for (const { file, begunBy, finishedBy, token } of handedOn.finished) {
    say(`${file}: begun by ${begunBy}, finished by ${finishedBy}, with token ${token}`);
  }
  const isByOthers = handedOn.finished.every(({ begunBy, finishedBy }) => begunBy !== finishedBy);
  const lost = FILES * ORDERS - handedOn.total;
  return [
    {
      what: 'Imported orders lost, lock ends at the queue',
      measured: `${FILES * ORDERS - unlocked.total} of ${FILES * ORDERS}`,
      promised: 'some',
    },
    {
      what: 'Imported orders lost, lock handed on',
      measured: `${lost} of ${FILES * ORDERS}`,
      promised: '0',
      isKept: lost === 0 && handedOn.finished.length === FILES && isByOthers,
    },
  ];
}

/**
 * @param {import('../fleet.mjs').Fleet} fleet
 * @param {string} batch
 * @returns {Promise<{ total: number, finished: Finished[] }>}
 */
async function importBatch(fleet, batch, how = '') {
  const counter = fleet.named('shop-1') ?? fleet.other();
  const result = fleet.other(counter).get(`/imports/${batch}?files=${FILES}`);
  const begun = await Promise.all(
    Array.from({ length: FILES }, (_, i) =>
      counter.post(`/imports/${batch}/files/file-${i + 1}${how}`, { orders: ORDERS, files: FILES }),
    ),
  );
  for (const { status, body } of begun) if (status !== 202) throw new Error(`An import was refused: ${body?.message}`);
  return (await result).body;
}
