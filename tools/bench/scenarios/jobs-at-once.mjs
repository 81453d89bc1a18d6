import { ADDED, DECORATED, PLAIN } from '../tasks/jobs-at-once-names.mjs';
import { inProcessOfOurs, roundsOfOurs, spreadSeries } from './solo.mjs';

const KINDS = [PLAIN, ADDED, DECORATED];
const SIZES = [150, 1_000];
const ROUNDS = 3;

const rowOf = (kind, jobs) => `${kind}, ${jobs.toLocaleString('en-US')}`;

/** Ours of plain jobs, at each size. */
const ofPlain = (kind) =>
  SIZES.map((jobs) => ({
    text: `processor time of ${rowOf(kind, jobs)} jobs, of as many of cron`,
    of: (values) => values[rowOf(kind, jobs)]?.cpuMs / values[rowOf(PLAIN, jobs)]?.cpuMs,
    atMost: 1,
  }));

export const scenario = {
  name: 'jobs-at-once',
  title: 'Many daily jobs that are due at one second',
  how:
    'One process has 150 or 1,000 jobs with one daily expression and time zone: plain jobs of the package `cron`, jobs of ' +
    '`SingletonJobs.add`, and methods with `@SingletonCron`, each in a fresh process and at its first tick. CPU is the processor time ' +
    'of the process from half a second before the tick until all jobs have run and are released. The longest turn is the most of it ' +
    'that was used between two calls of a timer of 1 ms.',
  metrics: [
    { id: 'cpuMs', label: 'CPU, ms', digits: 0 },
    { id: 'longestTurnMs', label: 'longest turn, ms', digits: 0 },
  ],
  targets: [
    ...ofPlain(ADDED),
    ...ofPlain(DECORATED),
    ...SIZES.map((jobs) => ({
      text: `longest turn of ${rowOf(ADDED, jobs)} jobs`,
      of: (values) => values[rowOf(ADDED, jobs)]?.longestTurnMs,
      atMost: 100,
      unit: ' ms',
    })),
  ],
  async run(bench) {
    const measure = async () => {
      const values = {};
      for (const size of SIZES) {
        for (const kind of KINDS) {
          const args = { kind, jobs: bench.count(size, 20) };
          values[rowOf(kind, size)] = await inProcessOfOurs(bench, 'jobs-at-once', args, { timeoutMs: 60_000 });
        }
      }
      return values;
    };
    const rounds = Math.min(bench.rounds, ROUNDS);
    return { rounds: spreadSeries(await roundsOfOurs(bench, 'jobs-at-once', measure, { rounds })) };
  },
};
