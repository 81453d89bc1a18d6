// @ts-check
import { say } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

/** @typedef {import('../screen.mjs').Finding} Finding */
/** @typedef {import('nestjs-redis-lock/schedule').JobRun} JobRun */

/**
 * Pauses, resumes and runs a job on any instance, for all of them, like operators do.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<Finding[]>}
 */
export async function operatorScene(fleet) {
  const [first, second] = fleet.shops;
  if (!first || !second) throw new Error('The scene needs two instances');
  await order(first, 'PUT', '/jobs/prize-draw/pause', { by: 'ann' });
  const { pause } = (await first.operate('GET', '/jobs/prize-draw')).body;
  say(`Paused by ${pause.by}, on ${first.name}`);
  await order(second, 'POST', '/jobs/prize-draw/runs', { by: 'bob' });
  say(`Drawn by hand by bob, on ${second.name}, though it is paused`);
  // The first instance that asks for the tick learns of the pause. For the others, the tick has ended.
  await waitUntil('a tick that is skipped', async () => {
    return (await Promise.all(fleet.running.map(hasSkipped))).includes(true);
  });
  // Read while it is still paused, and told by the clock of Redis: so it is all that began during the pause.
  const runs = await history(first, 'prize-draw');
  await order(second, 'DELETE', '/jobs/prize-draw/pause');
  say(`Resumed on ${second.name}`);

  const begun = runs.filter(({ startedAt, outcome }) => startedAt > pause.at && outcome !== 'missed');
  const byHand = begun.filter(({ manual, by, outcome }) => manual && by === 'bob' && outcome === 'ok');
  const bySchedule = begun.filter(({ manual }) => !manual);
  return [
    {
      what: 'Draws while the draw was paused',
      measured: `${bySchedule.length} by the schedule, ${byHand.length} by hand`,
      promised: '0 and 1',
      isKept: bySchedule.length === 0 && byHand.length === 1,
    },
  ];
}

/**
 * An instance that is back makes up for the ticks that no instance could run: it alone counts its till.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @param {string} name of the instance that was killed, and is back
 * @returns {Promise<Finding[]>}
 */
export async function tillScene(fleet, name) {
  const look = async () => {
    const entries = await history(fleet.other(), `till-of-${name}`);
    const missed = entries.filter(({ outcome }) => outcome === 'missed').map(({ tick }) => tick);
    const { body } = await fleet.other().get(`/tills/${name}/counts`);
    const caughtUp = body.map((/** @type {{ missed: number }} */ count) => count.missed).filter(Boolean);
    return { ticks: missed.length, distinct: new Set(missed).size, caughtUp };
  };
  const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, number) => total + number, 0);
  const isEachOnce = (/** @type {Awaited<ReturnType<typeof look>>} */ { ticks, distinct, caughtUp }) =>
    ticks > 0 && distinct === ticks && sum(caughtUp) === ticks;
  const seen = await waitUntil('the missed ticks are made up for', async () => {
    const looked = await look();
    return isEachOnce(looked) && looked;
  }).catch(look);
  const { ticks, caughtUp } = seen;
  const counts = caughtUp.length === 1 ? '1 count' : `${caughtUp.length} counts`;
  say(`Its till missed ${ticks} ticks meanwhile, and makes up for them in ${counts}`);
  return [
    {
      what: `Ticks that the till of ${name} missed`,
      measured: `${ticks}, made up for in ${counts}`,
      promised: 'each once',
      isKept: isEachOnce(seen),
    },
  ];
}

/**
 * Returns true if it has skipped a tick of the prize draw because of the pause. @param
 * {import('../shop-process.mjs').ShopProcess} shop
 */
async function hasSkipped(shop) {
  const metrics = await (await fetch(`${shop.url}/metrics`)).text();
  return /^nestjs_redis_lock_job_skipped_total\{[^}]*lock_job="prize-draw"[^}]*reason="paused"[^}]*\} [1-9]/m.test(
    metrics,
  );
}

/** @param {import('../shop-process.mjs').ShopProcess} shop @param {string} job @returns {Promise<JobRun[]>} */
async function history(shop, job) {
  return (await shop.operate('GET', `/jobs/${job}/history?limit=1000`)).body;
}

/** @param {import('../shop-process.mjs').ShopProcess} shop @param {string} method @param {string} path @param {object} [body] */
async function order(shop, method, path, body) {
  const answer = await shop.operate(method, path, body);
  if (answer.status !== 204) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
}
