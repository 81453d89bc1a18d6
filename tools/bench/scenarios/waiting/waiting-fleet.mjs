import { ours } from '../ratios.mjs';
import { roundsOfOurs } from '../solo.mjs';
import { costOfWaiting, METRICS } from './waiting.mjs';

const INSTANCES = 1_000;
const LEADERSHIPS = 20;
const JOBS = 20;
const EVERY_MS = 10_000;
const PROCESSES = 8;
/** Four ticks of each job. */
const FOR_MS = 40_000;
const ROUNDS = 1;

export const scenario = {
  name: 'waiting-fleet',
  title: '1,000 instances with 20 leaderships and 20 cron jobs',
  meaning: 'What a large fleet costs Redis all day long.',
  how:
    '1,000 instances, 125 in each of 8 processes, campaign for the same 20 leaderships with leases of 30 s, and have 20 cron jobs that ' +
    'are due every 10 s, at the same moment. Scripts are split by their names into claims of ticks (with the ends of runs), places ' +
    'that are kept, and probes of inboxes. Measured over 40 s, in one round.',
  metrics: [...METRICS, { id: 'claims', label: 'claims/s', digits: 0 }, { id: 'keeps', label: 'keeps/s', digits: 0 }],
  chart: { metric: 'redisPercent', unit: '% of a Redis core', limit: 20 },
  targets: [{ text: 'CPU of Redis', of: ours('redisPercent'), atMost: 20, unit: ' %' }],
  async run(bench) {
    const instances = bench.count(INSTANCES, 16);
    const jobs = bench.count(JOBS, 4);
    const measure = () =>
      costOfWaiting(bench, {
        processes: PROCESSES,
        async prepare([first, ...others], ask) {
          await ask({ step: 'start', instances: instances / PROCESSES });
          const campaign = {
            step: 'campaign',
            leaderships: LEADERSHIPS,
            jobs: 0,
            prefix: bench.resource('waiting-fleet'),
          };
          await first.ask('waits', { ...campaign, jobs });
          await Promise.all(others.map((worker) => worker.ask('waits', campaign)));
        },
        settleMs: bench.ms(20_000),
        forMs: bench.ms(FOR_MS),
        work: { jobs, everyMs: EVERY_MS },
      });
    return { rounds: await roundsOfOurs(bench, 'waiting-fleet', measure, { rounds: Math.min(bench.rounds, ROUNDS) }) };
  },
};
