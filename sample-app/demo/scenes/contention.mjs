// @ts-check
import { say } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

/** Enough for a checkout of half a second. Doubled if the checkout was too fast. */
const ARTICLES = 24;
const ATTEMPTS = 4;
const CREDITS = 10;
const ROWS_SHOWN = 6;
const CHECKOUT = 'CheckoutService.checkOut';
const CREDIT = 'LoyaltyService.credit';

/** @typedef {import('../shop-process.mjs').ShopProcess} ShopProcess */
/** @typedef {import('nestjs-redis-lock').Contention} Contention */

/**
 * A customer's points wait for his checkout on another instance, and for each other. An operator sees what they wait for.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function contentionScene(fleet) {
  const waiting = fleet.other();
  const buying = fleet.other(waiting);
  let before = 0;
  let explained;
  for (let attempt = 1; explained === undefined; attempt++) {
    if (attempt > ATTEMPTS) throw new Error('The checkout was always over before all credits waited for it');
    if (attempt > 1) say('The checkout was over before all credits waited for it; once more, with more articles');
    before = creditsThatWaited(await contentionOf(waiting));
    explained = await creditDuringCheckout(waiting, buying, ARTICLES * 2 ** (attempt - 1));
  }
  say(`${waiting.name} explains customer:carol: ${explained}`);

  const contention = await contentionOf(waiting);
  say(`What the calls of ${waiting.name} have waited for since its start, the longest first:`);
  const rows = contention.blockers.filter(({ waiter, holder }, index) => {
    return index < ROWS_SHOWN || (waiter === CREDIT && holder === CHECKOUT);
  });
  for (const { text } of rows) say(`  ${text}`);
  const calls = creditsThatWaited(contention) - before;
  return [
    {
      what: 'Credits that waited for the checkout',
      measured: `${calls} of ${CREDITS}`,
      promised: 'all',
      isKept: calls === CREDITS,
    },
  ];
}

/**
 * Credits points while the customer's basket is bought, and asks why they wait.
 *
 * @param {ShopProcess} waiting
 * @param {ShopProcess} buying
 * @param {number} articles
 * @returns {Promise<string | undefined>} the answer; undefined if the checkout ended before all credits waited for it
 */
async function creditDuringCheckout(waiting, buying, articles) {
  await waiting.put('/stock/mug', { units: articles });
  await Promise.all(Array.from({ length: articles }, () => buying.post('/baskets/mugs/items', { sku: 'mug' })));
  let isOver = false;
  const checkout = buying.post('/baskets/mugs/checkout', { customer: 'carol' }).finally(() => (isOver = true));
  await waitUntil('the checkout runs', async () => {
    return isOver || (await waiting.lock('customer:carol')).holders.length > 0;
  });
  const credits = Array.from({ length: CREDITS }, () => waiting.post('/customers/carol/points', { points: 1 }));
  const answers = Promise.all([checkout, ...credits]);
  await waitUntil('the credits wait', async () => {
    const { groups } = await contentionOf(waiting);
    return isOver || groups.some(({ group, waiting: calls }) => group === CREDIT && calls === CREDITS);
  });
  /** @type {import('nestjs-redis-lock').LockExplanation} */
  const { sentences } = (await waiting.operate('GET', '/locks/customer:carol/explain')).body;
  // An article is still in the basket: so the checkout had the lock all the time, and all of them wait for it.
  const { skus } = (await waiting.get('/baskets/mugs')).body;
  const [{ status }] = await answers;
  return status === 201 && skus.length > 0 ? sentences[0] : undefined;
}

/** @param {ShopProcess} shop @returns {Promise<Contention>} */
async function contentionOf(shop) {
  return (await shop.operate('GET', '/contention')).body;
}

/** Counts the credits that have waited for a checkout. @param {Contention} contention */
function creditsThatWaited({ blockers }) {
  return blockers.find(({ waiter, holder }) => waiter === CREDIT && holder === CHECKOUT)?.calls ?? 0;
}
