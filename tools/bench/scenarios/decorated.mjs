import { DECORATED, USING } from '../tasks/decorated-names.mjs';
import { inProcessOfOurs, roundsOfOurs } from './solo.mjs';

const ROUND_MS = 2_500;

export const scenario = {
  name: 'decorated',
  title: '@DistributedLock beside using()',
  how:
    'One process, one caller: a call of a method of a Nest provider that is decorated with `@DistributedLock`, then `locks.using()` ' +
    'with the same body, in turns, and the first one changes with every pair. The ratio is that of the medians of a round.',
  metrics: [
    { id: 'p50Us', label: 'p50, µs', digits: 1 },
    { id: 'p99Us', label: 'p99, µs', digits: 1 },
  ],
  targets: [
    {
      text: 'decorated method, of using()',
      of: (values) => values[DECORATED]?.p50Us / values[USING]?.p50Us,
      atMost: 1.05,
    },
  ],
  async run(bench) {
    const measure = () => inProcessOfOurs(bench, 'decorated', { ms: bench.ms(ROUND_MS) });
    return { rounds: spreadSeries(await roundsOfOurs(bench, 'decorated', measure)) };
  },
};

/** One task measures several series: each becomes a row. */
export function spreadSeries(rounds) {
  return rounds.map(({ order, values: { ours } }) => ({ order, values: ours.failed === undefined ? ours : { ours } }));
}
