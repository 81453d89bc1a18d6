import { contestant, OURS } from '../../contestants/index.mjs';
import { quantile } from '../../measure/statistics.mjs';
import { atEachDistance, roundsAtEachDistance } from './distances.mjs';

/** Those that can lock several resources in one call. */
const EVERYONE = [OURS, 'redlock', 'sesamecare-redlock', 'redlock-universal'];
const COUNTS = [2, 5];
const SLICE_MS = 400;

const target = (count) => ({
  text: `${count} resources: p50, of the best peer, 5 ms`,
  of: (values) => {
    const metric = `farP50Of${count}`;
    const peers = EVERYONE.slice(1).map((name) => values[name]?.[metric]);
    return values[OURS]?.[metric] / Math.min(...peers.filter(Number.isFinite));
  },
  atMost: 1.05,
});

export const scenario = {
  name: 'network-several',
  group: 'network',
  title: 'Several free resources over a network',
  how:
    'One process, one caller: acquire 2 (or 5) resources that no other caller uses in one call, release them, and again. `redlock` and ' +
    '`@sesamecare-oss/redlock` send one script with all keys; so does `redlock-universal`, with its `acquireBatch` and `releaseBatch`. ' +
    'A cluster refuses such a script where the keys are not in one slot. Delays as above. The others have no lock of several resources.',
  metrics: atEachDistance(
    COUNTS.map((count) => ({ id: `p50Of${count}`, label: `${count} resources, p50, ms`, digits: 2 })),
  ),
  targets: COUNTS.map(target),
  async run(bench) {
    const everyone = EVERYONE.map((name) => contestant(name));
    return {
      rounds: await roundsAtEachDistance(bench, (there) =>
        there.eachRound('network-several', everyone, (one) => several(there, one)),
      ),
    };
  },
};

async function several(bench, { name }) {
  const [worker] = bench.fleets.of(name, 1);
  const values = {};
  for (const resources of COUNTS) {
    const slice = (ms) => {
      const prefix = bench.resource('network-several');
      return worker.ask('throughput', { callers: 1, resources, ms, prefix });
    };
    await slice(50); // warm-up
    const { latenciesMs } = await slice(bench.ms(SLICE_MS));
    values[`p50Of${resources}`] = quantile(latenciesMs, 0.5);
  }
  return values;
}
