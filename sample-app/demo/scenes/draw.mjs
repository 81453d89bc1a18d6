// @ts-check
import { say } from '../screen.mjs';
import { waitUntil } from '../wait-until.mjs';

const TICKS = 6;
const SECOND_MS = 1_000;

/** @typedef {{ instance: string, tick: string, rerun: boolean }} Run */

/**
 * A job on a one-second schedule, which every instance has.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export async function drawScene(fleet) {
  // The first tick that is still to come for every clock.
  const first = Math.ceil(Date.now() / SECOND_MS + 1) * SECOND_MS;
  const expected = Array.from({ length: TICKS }, (_, i) => new Date(first + i * SECOND_MS).toISOString());
  const next = new Date(first + TICKS * SECOND_MS).toISOString();

  const shown = new Set();
  const show = (/** @type {Run[]} */ runs) => {
    for (const run of runs.filter(({ tick }) => expected.includes(tick))) {
      if (shown.size === shown.add(`${run.tick} ${run.instance}`).size) continue;
      say(`${run.tick.slice(11, 19)} drawn by ${run.instance}`);
    }
  };
  // Until a tick after the last one has run: a late instance has then had the time to run one twice.
  await waitUntil('a prize draw every second', async () => {
    const runs = await drawn(fleet);
    show(runs);
    return runs.some(({ tick }) => tick >= next);
  });
  // A tick that is still waiting for its turn is not missed.
  const isComplete = (/** @type {Run[]} */ runs) => expected.every((tick) => runs.some((run) => run.tick === tick));
  await waitUntil('all draws', async () => isComplete(await drawn(fleet))).catch(() => {});

  say('A slow clock comes late to each of them, and finds it drawn.');

  const runs = (await drawn(fleet)).filter(({ tick }) => expected.includes(tick));
  const missed = expected.filter((tick) => !runs.some((run) => run.tick === tick)).length;
  const perInstance = fleet.shops.map(({ name }) => `${name} ${runs.filter((run) => run.instance === name).length}`);
  return [
    {
      what: `Draws at ${TICKS} ticks`,
      measured: perInstance.join(', '),
      promised: `${TICKS} in all`,
      isKept: runs.length === TICKS,
    },
    { what: 'Ticks missed', measured: String(missed), promised: '0', isKept: missed === 0 },
  ];
}

/**
 * Over the whole demo, the kill and the pause included.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding>}
 */
export async function duplicateDraws(fleet) {
  const runs = await drawn(fleet);
  const duplicates = runs.length - new Set(runs.map(({ tick }) => tick)).size;
  return {
    what: 'Ticks run twice, in the whole demo',
    measured: `${duplicates} of ${runs.length}`,
    promised: '0',
    isKept: duplicates === 0,
  };
}

/** @param {import('../fleet.mjs').Fleet} fleet @returns {Promise<Run[]>} */
async function drawn(fleet) {
  return (await fleet.other().get('/jobs/prize-draw/runs')).body;
}
