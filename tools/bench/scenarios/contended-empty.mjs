import { runContended, waitMetrics } from './contended.mjs';
import { toLeastOfPeers, toMostOfPeers } from './ratios.mjs';

export const scenario = {
  name: 'contended-empty',
  title: 'One resource, 32 callers, nothing to do under the lock',
  how:
    'Four processes with eight callers each want the same resource for 3 s: acquire, release, and again. No call times out. A caller ' +
    'that still waits at the end counts with its wait. Whether two sections ever overlapped is checked by time stamps of one clock. Below ours are the other two calls that users make.',
  metrics: waitMetrics,
  compare: ['leasesPerSecond', 'cpuUs', 'longestWaitMs'],
  targets: [
    { text: 'leases/s, of the best peer', of: toMostOfPeers('leasesPerSecond'), atLeast: 10 },
    { text: 'longest wait, of the best peer', of: toLeastOfPeers('longestWaitMs'), atMost: 0.2 },
  ],
  run: (bench) => runContended(bench, 'contended-empty', { sectionMs: 0 }),
};
