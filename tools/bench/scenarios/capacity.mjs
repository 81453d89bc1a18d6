import { OURS } from '../contestants/index.mjs';
import { measureFleet } from '../measure/fleet.mjs';

const METRICS = [
  { id: 'connections', label: 'connections', digits: 0 },
  { id: 'clientKb', label: 'their memory, kB', digits: 0 },
  { id: 'dataKb', label: 'data, kB', digits: 0 },
  { id: 'scripts', label: 'scripts/s', digits: 1 },
  { id: 'published', label: 'messages/s', digits: 1 },
  { id: 'receivedKb', label: 'kB/s to Redis', digits: 1 },
  { id: 'sentKb', label: 'kB/s from Redis', digits: 1 },
  { id: 'redisPercent', label: 'CPU of Redis, %', digits: 2 },
  { id: 'ownPercent', label: 'of the clients, %', digits: 1 },
];
/** On top of being connected. The last one is the example of docs/operations/benchmarks.md#capacity-how-much-redis-does-a-fleet-need. */
const EACH = {
  'only connected': {},
  'waits for 1 lock': { waits: 1 },
  'waits for 10 locks': { waits: 10 },
  'candidate for 20 leaderships': { leaderships: 20 },
  'holds 10 locks': { locks: 10 },
  'holds 10 permits': { permits: 10 },
  '20 jobs, each due every 10 s': { jobs: 20, everyMs: 10_000 },
  '1 free lock a second': { pairs: 1 },
  'the example': { jobs: 10, everyMs: 60_000, leaderships: 5, locks: 5, waits: 5, pairs: 1 },
};

export const scenario = {
  name: 'capacity',
  title: 'What 1,000 instances need of Redis, by what each of them does',
  how:
    'Leases of 30 s. `INFO` of a Redis of its own says what it has and has used in the time that is measured: `used_cpu_user` and ' +
    '`used_cpu_sys` of one core, `used_memory`, commands and bytes. What waiting calls wait for is held by another process, which sends ' +
    'nothing meanwhile.',
  metrics: METRICS,
  targets: [],
  async run(bench) {
    const everyone = Object.keys(EACH).map((name) => ({ name, label: name, fleet: OURS }));
    const measure = ({ name }) => {
      const load = sized(bench, { instances: 1_000, processes: 8, ...EACH[name] });
      // Whole periods of a job, and in a smoke run enough for one tick.
      const forMs = Math.max(5_500, bench.ms(Math.max(40_000, load.everyMs ?? 0)));
      return measureFleet(bench.url, load, { forMs, settleMs: bench.ms(20_000) });
    };
    return { rounds: await bench.eachRound('capacity', everyone, measure, { rounds: 1 }) };
  },
};

function sized(bench, load) {
  const instances = bench.count(load.instances, Math.min(load.instances, 16));
  return { ...load, instances, ...(load.waits && { waits: bench.count(load.waits, Math.min(load.waits, 50)) }) };
}
