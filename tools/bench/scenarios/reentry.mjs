import { spreadSeries } from './decorated.mjs';
import { inProcessOfOurs, roundsOfOurs } from './solo.mjs';

const ROUND_MS = 600;

export const scenario = {
  name: 'reentry',
  title: 'Re-entry, and the checks a holder makes',
  how:
    'One process, one caller that holds a reentrant lease. Re-entry is `locks.using()` inside of it, once (depth 2). The checks go to ' +
    'no Redis; each is the mean of many calls.',
  metrics: [{ id: 'us', label: 'µs for one', digits: 3 }],
  targets: [],
  async run(bench) {
    const measure = () => inProcessOfOurs(bench, 'reenter', { ms: bench.ms(ROUND_MS) });
    return { rounds: spreadSeries(await roundsOfOurs(bench, 'reentry', measure)) };
  },
};
