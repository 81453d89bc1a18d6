// The common part of scenarios without contention.
import { Redis } from 'ioredis';
import { concat } from '../measure/exclusion.mjs';
import { redisUsage, usageBetween } from '../measure/redis-usage.mjs';
import { quantile, rotated, sum } from '../measure/statistics.mjs';

const SLICES = 5;
const SLICE_MS = 200;

export const throughputMetrics = [
  { id: 'leasesPerSecond', label: 'leases/s', digits: 0 },
  { id: 'p50Us', label: 'p50, µs', digits: 0 },
  { id: 'p99Us', label: 'p99, µs', digits: 0 },
  { id: 'cpuUs', label: 'client CPU, µs', digits: 1 },
  { id: 'redisUs', label: 'commands in Redis, µs', digits: 1 },
  { id: 'redisCpuUs', label: 'Redis CPU, µs', digits: 1 },
  { id: 'bytes', label: 'bytes to Redis', digits: 0 },
];

/** A machine is fast now and slow then: everyone has several short slices in each round, side by side. */
export async function runThroughput(
  bench,
  scenario,
  work,
  everyone = bench.contestants('baseline', 'ours', 'call', 'peer'),
) {
  const redis = new Redis(bench.url);
  const slice = async (one, ms) => {
    const before = await redisUsage(redis);
    const prefix = bench.resource(scenario);
    const result = await bench.fleets.of(one.name, 1)[0].ask('throughput', { ...work, ms, prefix });
    return { ...result, used: usageBetween(before, await redisUsage(redis)) };
  };
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
    const values = everyone.map((one) => [one.name, failed[one.name] ?? summary(slices[one.name], one)]);
    rounds.push({ order: rotated(everyone, round).map(({ name }) => name), values: Object.fromEntries(values) });
    bench.say(`  round ${round + 1} of ${bench.rounds}`);
  }
  redis.disconnect();
  return { rounds };
}

function summary(slices, { commands }) {
  const latencies = concat(slices.map(({ latenciesMs }) => latenciesMs));
  const { length: leases } = latencies;
  const elapsedMs = sum(slices.map((slice) => slice.elapsedMs));
  // Scripts call commands, too: only of those that a contestant does not name, nobody knows who has sent them.
  const usedUs =
    commands && sum(slices.flatMap(({ used }) => ['evalsha', ...commands].map((name) => used.usec[name] ?? 0)));
  return {
    leasesPerSecond: (leases / elapsedMs) * 1000,
    p50Us: quantile(latencies, 0.5) * 1000,
    p99Us: quantile(latencies, 0.99) * 1000,
    cpuUs: (sum(slices.map(({ cpuMs }) => cpuMs)) * 1000) / leases,
    ...(commands && { redisUs: usedUs / leases }),
    redisCpuUs: (sum(slices.map(({ used }) => used.cpuMs)) * 1000) / leases,
    bytes: sum(slices.map(({ used }) => used.received)) / leases,
  };
}
