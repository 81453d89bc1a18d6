// @ts-check
import { say } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

/** So many that the checkout takes half a second, in which all credits have begun to wait. */
const ARTICLES = 24;
const CREDITS = 10;
const ROWS_SHOWN = 6;
const CHECKOUT = 'CheckoutService.checkOut';
const CREDIT = 'LoyaltyService.credit';

/**
 * A customer's points wait for his checkout on another instance, and for each other. An operator sees what they wait for.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function contentionScene(fleet) {
  const waiting = fleet.other();
  const buying = fleet.other(waiting);
  await waiting.put('/stock/mug', { units: ARTICLES });
  await Promise.all(Array.from({ length: ARTICLES }, () => buying.post('/baskets/mugs/items', { sku: 'mug' })));
  const checkout = buying.post('/baskets/mugs/checkout', { customer: 'carol' });
  await waitUntil('the checkout runs', async () => (await waiting.lock('customer:carol')).holders.length > 0);
  const credits = Array.from({ length: CREDITS }, () => waiting.post('/customers/carol/points', { points: 1 }));
  /** @type {import('nestjs-redis-lock').LockExplanation} */
  const { sentences } = (await waiting.operate('GET', '/locks/customer:carol/explain')).body;
  say(`${waiting.name} explains customer:carol: ${sentences[0]}`);
  await Promise.all([checkout, ...credits]);

  /** @type {import('nestjs-redis-lock').Contention} */
  const { blockers } = (await waiting.operate('GET', '/contention')).body;
  say(`What the calls of ${waiting.name} have waited for since its start, the longest first:`);
  for (const { text } of blockers.slice(0, ROWS_SHOWN)) say(`  ${text}`);
  const [longest] = blockers.filter(({ waiter }) => waiter === CREDIT);
  return [
    {
      what: `What ${CREDIT} waited for most`,
      measured: longest?.holder ?? 'nothing',
      promised: 'the checkout',
      isKept: longest?.holder === CHECKOUT,
    },
  ];
}
