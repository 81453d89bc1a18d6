import { runContended, waitMetrics } from './contended.mjs';
import { ours, toLeastOfPeers, toMostOfPeers } from './ratios.mjs';

export const scenario = {
  name: 'contended-2ms',
  title: 'One resource, 32 callers, 2 ms of work under the lock',
  how:
    'As above, with `setTimeout(2)` as the work. Its real length is measured (the column "section"): with a lock that costs nothing, ' +
    '1 / section leases would fit into a second. "In use" is how much of that was reached.',
  metrics: [
    ...waitMetrics,
    { id: 'sectionMs', label: 'section, ms', digits: 2 },
    { id: 'idealShare', label: 'in use', digits: 2 },
  ],
  compare: ['leasesPerSecond', 'longestWaitMs'],
  targets: [
    { text: 'leases/s, of the best peer', of: toMostOfPeers('leasesPerSecond'), atLeast: 1.1 },
    { text: 'in use', of: ours('idealShare'), atLeast: 0.95, unit: '' },
    { text: 'longest wait, of the best peer', of: toLeastOfPeers('longestWaitMs'), atMost: 0.25 },
  ],
  run: (bench) => runContended(bench, 'contended-2ms', { sectionMs: 2 }),
};
