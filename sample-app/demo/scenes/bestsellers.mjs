// @ts-check
import { say } from '../screen.mjs';

/** More processes of two of the shops: they share their tills. */
const MORE = [
  { name: 'shop-4', env: { TILL: 'shop-1' } },
  { name: 'shop-5', env: { TILL: 'shop-2' } },
];
const REQUESTS = 50;

/**
 * Five instances start cold, and everybody asks for the bestsellers.
 *
 * @param {import('../fleet.mjs').Fleet} fleet
 * @returns {Promise<import('../screen.mjs').Finding[]>}
 */
export function bestsellersScene(fleet) {
  return fleet.withMore(MORE, async () => {
    say(`${fleet.running.length} instances, ${REQUESTS} requests at once`);
    const alone = await askAll(fleet, 'bestsellers-alone');
    say(`without @Once: ${alone.queries} queries`);
    const once = await askAll(fleet, 'bestsellers');
    say(`with @Once:    ${once.queries} query, by ${once.countedBy.join(', ')}, and ${once.answers} answers`);
    const again = await askAll(fleet, 'bestsellers');
    return [
      {
        what: 'Queries by five cold instances, each for itself',
        measured: `${alone.queries} for ${REQUESTS} requests`,
        promised: 'some',
      },
      {
        what: 'Queries by five cold instances, @Once',
        measured: `${once.queries} for ${REQUESTS} requests`,
        promised: '1',
        isKept: once.queries === 1 && once.answers === REQUESTS && once.countedBy.length === 1,
      },
      {
        what: 'Queries by the next requests, @Once',
        measured: `${again.queries - once.queries} for ${REQUESTS} requests`,
        promised: '0',
        isKept: again.queries === once.queries && again.answers === REQUESTS,
      },
    ];
  });
}

/** @param {import('../fleet.mjs').Fleet} fleet @param {string} path */
async function askAll(fleet, path) {
  const answers = await Promise.all(Array.from({ length: REQUESTS }, (_, i) => fleet.byTurns(i).get(`/${path}`)));
  const { body: stamps } = await fleet.other().get(`/time-clock/${path}`);
  return {
    answers: answers.filter(({ status }) => status === 200).length,
    countedBy: [...new Set(answers.map(({ body }) => body.countedBy))],
    queries: stamps.filter((/** @type {{ at: string }} */ { at }) => at === 'in').length,
  };
}
