import { ours } from '../ratios.mjs';
import { roundsOfOurs } from '../solo.mjs';
import { costOfWaiting, METRICS } from './waiting.mjs';

const INSTANCES = 100;
const LEADERSHIPS = 20;
const PROCESSES = 4;
const FOR_MS = 30_000;
const ROUNDS = 3;

export const scenario = {
  name: 'waiting-candidates',
  title: '100 candidates for 20 leaderships',
  meaning: 'What a fleet costs while each of its instances waits to become the leader of everything.',
  how:
    '100 instances, 25 in each of 4 processes, campaign for the same 20 leaderships, with leases of 30 s. Scripts are all that they ' +
    'send beside the probes of their inboxes: places that are kept, and leases that are renewed. Measured over 30 s.',
  metrics: METRICS,
  chart: { metric: 'redisPercent', unit: '% of a Redis core', limit: 2 },
  targets: [
    { text: 'scripts beside the probes', of: ours('scripts'), atMost: 50, unit: '/s' },
    { text: 'CPU of Redis', of: ours('redisPercent'), atMost: 2, unit: ' %' },
  ],
  async run(bench) {
    const instances = bench.count(INSTANCES, 8);
    const measure = () =>
      costOfWaiting(bench, {
        processes: PROCESSES,
        async prepare(workers, ask) {
          await ask({ step: 'start', instances: instances / PROCESSES });
          // What the killed processes of the round before have left is not counted.
          const prefix = bench.resource('waiting-candidates');
          await ask({ step: 'campaign', leaderships: LEADERSHIPS, jobs: 0, prefix });
        },
        settleMs: bench.ms(15_000),
        forMs: bench.ms(FOR_MS),
      });
    const rounds = Math.min(bench.rounds, ROUNDS);
    return { rounds: await roundsOfOurs(bench, 'waiting-candidates', measure, { rounds }) };
  },
};
