// What the scenarios share in which everyone is behind a network.
import { Network } from '../../network/network.mjs';

/** Another zone or region, and another machine in the same room. Milliseconds each way. */
export const DISTANCES = [
  { id: 'far', delayMs: 5, label: '5 ms' },
  { id: 'near', delayMs: 0.5, label: '0.5 ms' },
];
const ROUNDS = 3;

/** The metrics for each distance: `p50Ms` becomes `farP50Ms` and `nearP50Ms`. */
export function atEachDistance(metrics) {
  return DISTANCES.flatMap(({ id, label }) =>
    metrics.map((metric) => ({ ...metric, id: idAt(id, metric.id), label: `${label}: ${metric.label}` })),
  );
}

export function idAt(distance, id) {
  return `${distance}${id[0].toUpperCase()}${id.slice(1)}`;
}

/**
 * @param {import('../../bench.mjs').Bench} bench
 * @param {(bench: import('../../bench.mjs').Bench) => Promise<{ order: string[], values: object }[]>} measure at one
 *   distance: gives its rounds
 * @returns the rounds of all distances in one
 */
export async function roundsAtEachDistance(bench, measure) {
  let all;
  for (const { id, delayMs, label } of DISTANCES) {
    bench.say(`  ${label} each way`);
    const network = new Network({ delayMs });
    const there = bench.at(await network.way('clients', 'redis', bench.url));
    there.rounds = Math.min(bench.rounds, ROUNDS);
    try {
      const rounds = (await measure(there)).map((round) => renamed(round, id));
      all = all ? all.map((round, index) => joined(round, rounds[index])) : rounds;
    } finally {
      await there.fleets.dropAll();
      network.stop();
    }
  }
  return all;
}

function renamed({ order, values }, distance) {
  return { order, values: mapped(values, (result) => (result.failed ? result : at(distance, result))) };
}

function at(distance, result) {
  return Object.fromEntries(Object.entries(result).map(([id, value]) => [idAt(distance, id), value]));
}

function joined(one, other) {
  return { order: one.order, values: mapped(one.values, (result, name) => ({ ...result, ...other.values[name] })) };
}

function mapped(values, map) {
  return Object.fromEntries(Object.entries(values).map(([name, result]) => [name, map(result, name)]));
}
