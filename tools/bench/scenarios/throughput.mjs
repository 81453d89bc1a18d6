// The common part of scenarios without contention.
import { concat } from '../measure/exclusion.mjs';
import { quantile, rotated } from '../measure/statistics.mjs';

const SLICES = 5;
const SLICE_MS = 200;

export const throughputMetrics = [
  { id: 'leasesPerSecond', label: 'leases/s', digits: 0 },
  { id: 'p50Us', label: 'p50, µs', digits: 0 },
  { id: 'p99Us', label: 'p99, µs', digits: 0 },
];

/** A machine is fast now and slow then: everyone has several short slices in each round, side by side. */
export async function runThroughput(bench, scenario, work, everyone = bench.contestants('baseline', 'ours', 'peer')) {
  const slice = (one, ms) =>
    bench.fleets.of(one.name, 1)[0].ask('throughput', { ...work, ms, prefix: bench.resource(scenario) });
  for (const one of everyone) await bench.attempt(scenario, one, () => slice(one, bench.ms(600))); // warm-up

  const rounds = [];
  for (let round = 0; round < bench.rounds; round++) {
    const slices = Object.fromEntries(everyone.map(({ name }) => [name, []]));
    const failed = {};
    for (let index = 0; index < bench.count(SLICES, 2); index++) {
      for (const one of rotated(everyone, round + index)) {
        const result = await bench.attempt(scenario, one, () => slice(one, bench.ms(SLICE_MS)));
        if (result.failed === undefined) slices[one.name].push(result);
        else failed[one.name] = result;
      }
    }
    const values = everyone.map(({ name }) => [name, failed[name] ?? summary(slices[name])]);
    rounds.push({ order: rotated(everyone, round).map(({ name }) => name), values: Object.fromEntries(values) });
    bench.say(`  round ${round + 1} of ${bench.rounds}`);
  }
  return { rounds };
}

function summary(slices) {
  const latencies = concat(slices.map(({ latenciesMs }) => latenciesMs));
  const elapsedMs = slices.reduce((total, slice) => total + slice.elapsedMs, 0);
  return {
    leasesPerSecond: (latencies.length / elapsedMs) * 1000,
    p50Us: quantile(latencies, 0.5) * 1000,
    p99Us: quantile(latencies, 0.99) * 1000,
  };
}
