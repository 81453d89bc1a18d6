import { runContended, waitMetrics } from './contended.mjs';
import { toMostOfPeers } from './ratios.mjs';

export const scenario = {
  name: 'read-mostly',
  title: 'Readers and writers, 2 ms of work under the lock',
  how:
    'One resource, four processes with eight callers each; 95 of 100 calls read and 5 write, at random, with `setTimeout(2)` as the ' +
    "work. Ours uses the modes `'read'` and `'write'`. No other package here has a lock for readers, so with them every call locks " +
    'out all others. Checked by time stamps: no call is ever beside a writer. Every writer counts for the longest wait, also one that ' +
    'still waits at the end.',
  metrics: [
    { id: 'readsPerSecond', label: 'reads/s', digits: 0 },
    ...waitMetrics,
    { id: 'longestWriterWaitMs', label: 'longest wait of a writer, ms', digits: 0 },
  ],
  targets: [{ text: 'reads/s, of the best peer', of: toMostOfPeers('readsPerSecond'), atLeast: 5 }],
  run: (bench) => runContended(bench, 'read-mostly', { sectionMs: 2, readMostly: true }),
};
