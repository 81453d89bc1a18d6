import { contestant, OURS } from '../contestants/index.mjs';
import { contend } from '../measure/contention.mjs';
import { CALLERS, PROCESSES } from './contended.mjs';

/** No hand-over inside of a process goes before a process that has waited longer. The one place that knows the option. */
const STRICT_FIFO = { localHandOvers: 0 };

const SERIES = [
  { name: 'empty section', sectionMs: 0 },
  { name: '2 ms section', sectionMs: 2 },
];
const ROUND_MS = 3_000;

const eachSeries = (target) =>
  SERIES.map(({ name }) => ({
    ...target,
    text: `${name}: ${target.text}`,
    of: (values) => values[name]?.[target.metric],
  }));

export const scenario = {
  name: 'contended-fifo',
  title: 'First come, first served over all processes',
  how:
    'Ours only, with `localHandOvers: 0`: 32 callers in four processes as in the contended scenarios. The fair share is the number of ' +
    'callers times the mean time for a lease: how long each caller waits if none ever overtakes another. The last column is by how ' +
    'much the leases of any process differ from the mean of all processes.',
  metrics: [
    { id: 'leasesPerSecond', label: 'leases/s', digits: 0 },
    { id: 'longestWaitMs', label: 'longest wait, ms', digits: 1 },
    { id: 'fairShareMs', label: 'fair share, ms', digits: 1 },
    { id: 'longestToFairShare', label: 'longest / fair', digits: 2 },
    { id: 'processPercent', label: 'processes differ by, %', digits: 2 },
  ],
  targets: [
    ...eachSeries({ text: 'longest wait, of the fair share', metric: 'longestToFairShare', atMost: 1.5 }),
    ...eachSeries({ text: 'leases of a process, from the mean', metric: 'processPercent', atMost: 2, unit: ' %' }),
  ],
  async run(bench) {
    const ours = contestant(OURS);
    const args = { resource: bench.resource('contended-fifo'), tuning: STRICT_FIFO, step: 'ping' };
    try {
      await bench.fleets.of(OURS, 1)[0].ask('step', args);
    } catch (error) {
      if (error.code !== 'INVALID_LOCK_OPTIONS') throw error;
      return { rounds: [], skipped: `this build refuses it: ${error.message}` };
    }
    const run = async (sectionMs, ms) => {
      const options = { scenario: 'contended-fifo', ms, sectionMs, processes: PROCESSES, callers: CALLERS };
      const result = await contend(bench, ours, { ...options, tuning: STRICT_FIFO });
      return { ...result, processPercent: result.processSpread * 100 };
    };
    await bench.attempt('contended-fifo', ours, () => run(0, bench.ms(900))); // warm-up
    const everyone = SERIES.map(({ name, sectionMs }) => ({ ...ours, name, fleet: OURS, sectionMs }));
    return {
      rounds: await bench.eachRound('contended-fifo', everyone, ({ sectionMs }) => run(sectionMs, bench.ms(ROUND_MS))),
    };
  },
};
