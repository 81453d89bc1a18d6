// @ts-check
import { commandLine } from '../command-line.mjs';
import { say, seconds } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

/** Enough for a checkout of half a second. Doubled if the checkout was too fast. */
const ARTICLES = 24;
const ATTEMPTS = 4;
const LINES_SHOWN = 12;
const DEPLOYS = 5;

/** @typedef {import('../shop-process.mjs').ShopProcess} ShopProcess */

/**
 * Pauses an instance that holds a lock, and names it on the command line. Then a deploy starts several instances, and
 * one of them migrates the database.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @param {string} shop
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function nightScene(fleet, shop) {
  const found = await findThePaused(fleet, shop);
  return [found, await deploy(shop)];
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} shop @returns {Promise<import('../screen.mjs').Finding>} */
async function findThePaused(fleet, shop) {
  const buying = fleet.other();
  const waiting = fleet.other(buying);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const isOver = await checkout(buying, ARTICLES * 2 ** (attempt - 1));
    const isStill = await pauseWithTheLock(buying, waiting, isOver);
    if (!isStill) continue;
    say(`${buying.name} stands still (SIGSTOP) in the middle of a checkout, and ${waiting.name} waits for it`);
    const credit = waiting.post('/customers/dora/points', { points: 1 });
    const began = performance.now();
    const said = await waitUntil('the command line names the instance', async () => {
      const { stdout } = await commandLine(shop, ['status']);
      return stdout.split('\n').some((line) => line.includes('customer:dora') && line.includes(buying.name)) && stdout;
    });
    const tookMs = performance.now() - began;
    say(`npx nestjs-redis-lock status --prefix ${shop}-lock`);
    for (const line of said.trimEnd().split('\n').slice(0, LINES_SHOWN)) say(`  ${line.replaceAll('\t', '  ')}`);
    buying.resume();
    await credit;
    return {
      what: 'Paused holder named by `status`',
      measured: `${buying.name} after ${seconds(tookMs)}`,
      promised: 'by name',
      isKept: true,
    };
  }
  throw new Error('The checkout was always over before its instance was paused');
}

/**
 * Starts to buy a full basket. @param {ShopProcess} buying @param {number} articles @returns {Promise<() => boolean>}
 * returns true once it has ended
 */
async function checkout(buying, articles) {
  await buying.put('/stock/pot', { units: articles });
  await Promise.all(Array.from({ length: articles }, () => buying.post('/baskets/pots/items', { sku: 'pot' })));
  let isOver = false;
  const over = () => (isOver = true);
  buying.post('/baskets/pots/checkout', { customer: 'dora' }).then(over, over);
  return () => isOver;
}

/** @param {ShopProcess} buying @param {ShopProcess} asked @param {() => boolean} isOver */
async function pauseWithTheLock(buying, asked, isOver) {
  await waitUntil('the checkout runs', async () => {
    return isOver() || (await asked.lock('customer:dora')).holders.length > 0;
  });
  buying.pause();
  if ((await asked.lock('customer:dora')).holders.length > 0) return true;
  buying.resume();
  return false;
}

/** @param {string} shop @returns {Promise<import('../screen.mjs').Finding>} */
async function deploy(shop) {
  const migration = ['--', process.execPath, '-e', 'console.log("migrated")'];
  const typed = ['exec', 'migrate', '--once', 'release-42', ...migration];
  const runs = await Promise.all(Array.from({ length: DEPLOYS }, () => commandLine(shop, typed)));
  const migrated = runs.filter(({ stdout }) => stdout.includes('migrated')).length;
  say(`${DEPLOYS} instances of a deploy run \`exec migrate --once release-42\` at once; ${migrated} migrates`);
  return {
    what: `Migrations run by ${DEPLOYS} deploys at once`,
    measured: `${migrated}`,
    promised: '1',
    isKept: migrated === 1 && runs.every(({ code }) => code === 0),
  };
}
