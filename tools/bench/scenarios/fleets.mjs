// What a fleet needs of Redis while it holds, waits and claims.
import { OURS } from '../contestants/index.mjs';
import { measureFleet } from '../measure/fleet.mjs';
import { ours } from './ratios.mjs';

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
const HOW =
  'Leases of 30 s. `INFO` of a Redis of its own says what it has and has used in the time that is measured: `used_cpu_user` and ' +
  '`used_cpu_sys` of one core, `used_memory`, commands and bytes. What waiting calls wait for is held by another process, which sends ' +
  'nothing meanwhile.';

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

/** A probe of an inbox is a script that publishes one message: the others cost in proportion to what is waited for. */
const besideProbes = (values) => values[OURS]?.scripts - values[OURS]?.published;

export const fleets = [
  {
    name: 'waiting-calls',
    title: '5,000 calls of one instance that wait',
    loads: { [OURS]: { instances: 1, waits: 5_000 } },
    rounds: 3,
    targets: [
      { text: 'scripts', of: ours('scripts'), atMost: 20, unit: '/s' },
      { text: 'CPU of Redis', of: ours('redisPercent'), atMost: 1.5, unit: ' %' },
      { text: 'CPU of the client', of: ours('ownPercent'), atMost: 1.5, unit: ' %' },
    ],
  },
  {
    name: 'waiting-candidates',
    title: '100 candidates for 20 leaderships',
    loads: { [OURS]: { instances: 100, processes: 4, leaderships: 20 } },
    rounds: 3,
    targets: [
      { text: 'scripts beside the probes', of: besideProbes, atMost: 50, unit: '/s' },
      { text: 'CPU of Redis', of: ours('redisPercent'), atMost: 2, unit: ' %' },
    ],
  },
  {
    name: 'waiting-fleet',
    title: '1,000 instances with 20 leaderships and 20 cron jobs that are due every 10 s',
    loads: { [OURS]: { instances: 1_000, processes: 8, leaderships: 20, jobs: 20, everyMs: 10_000 } },
    targets: [{ text: 'CPU of Redis', of: ours('redisPercent'), atMost: 20, unit: ' %' }],
  },
  {
    name: 'capacity',
    title: 'What 1,000 instances need of Redis, by what each of them does',
    loads: Object.fromEntries(
      Object.entries(EACH).map(([name, load]) => [name, { instances: 1_000, processes: 8, ...load }]),
    ),
    targets: [],
  },
].map(({ loads, rounds = 1, ...scenario }) => ({
  how: HOW,
  metrics: METRICS,
  ...scenario,
  async run(bench) {
    const everyone = Object.keys(loads).map((name) => ({ name, label: name, fleet: OURS }));
    const measure = ({ name }) => {
      // Whole periods of a job, and in a smoke run enough for one tick.
      const forMs = Math.max(5_500, bench.ms(Math.max(40_000, loads[name].everyMs ?? 0)));
      return measureFleet(bench.url, sized(bench, loads[name]), { forMs, settleMs: bench.ms(20_000) });
    };
    return {
      rounds: await bench.eachRound(scenario.name, everyone, measure, { rounds: Math.min(bench.rounds, rounds) }),
    };
  },
}));

function sized(bench, load) {
  const instances = bench.count(load.instances, Math.min(load.instances, 16));
  return { ...load, instances, ...(load.waits && { waits: bench.count(load.waits, Math.min(load.waits, 50)) }) };
}
