// @ts-check
import { say, seconds } from '../screen.mjs';

const UNITS = 20;
const ORDERS = 60;
/** Without the lock it goes wrong practically always; a rush that does not is repeated. */
const UNLOCKED_RUSHES = 5;

/**
 * The same rush of orders for the same few units, without and with the lock.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function rushScene(fleet) {
  let unlocked = await rush(fleet, 'orders-without-lock');
  for (let again = 1; again < UNLOCKED_RUSHES && unlocked.oversold === 0; again++) {
    unlocked = await rush(fleet, 'orders-without-lock');
  }
  say(`without the lock: ${describe(unlocked)}`);
  const locked = await rush(fleet, 'orders');
  say(`with the lock:    ${describe(locked)}`);
  return [
    { what: 'Units oversold without the lock', measured: String(unlocked.oversold), promised: 'some' },
    {
      what: 'Units oversold with the lock',
      measured: String(locked.oversold),
      promised: '0',
      isKept: locked.oversold === 0,
    },
    {
      what: 'Orders that got neither a unit nor "sold out"',
      measured: String(ORDERS - locked.sold - locked.turnedAway),
      promised: '0',
      isKept: locked.sold + locked.turnedAway === ORDERS && locked.sold >= UNITS,
    },
  ];
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} path */
async function rush(fleet, path) {
  const counter = fleet.other();
  await counter.put('/stock/tea', { units: UNITS });
  const began = performance.now();
  const orders = Array.from({ length: ORDERS }, (_, i) => fleet.byTurns(i).post(`/stock/tea/${path}`));
  const answers = await Promise.all(orders);
  const tookMs = performance.now() - began;
  const { sold } = (await counter.get('/stock/tea')).body;
  const turnedAway = answers.filter(({ status }) => status === 409).length;
  return { sold, oversold: Math.max(0, sold - UNITS), turnedAway, tookMs };
}

/** @param {Awaited<ReturnType<typeof rush>>} outcome */
function describe({ sold, oversold, turnedAway, tookMs }) {
  return `${sold} sold, ${turnedAway} told "sold out" (${seconds(tookMs)})${oversold > 0 ? `; ${oversold} of them do not exist` : ''}`;
}
