import { toContestant, toMostOfPeers } from './ratios.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

export const scenario = {
  name: 'uncontended-64',
  title: 'Free locks, 64 callers at once',
  how: 'As above, with 64 callers in one process that never meet. The process is the limit here, not the round trip.',
  metrics: throughputMetrics,
  compare: ['leasesPerSecond', 'cpuUs'],
  targets: [
    { text: 'leases/s, of the raw pair', of: toContestant('raw', 'leasesPerSecond'), atLeast: 0.9 },
    {
      text: 'leases/s, of the raw pair with a token',
      of: toContestant('raw-fenced', 'leasesPerSecond'),
      atLeast: 0.97,
    },
    { text: 'leases/s, of the best peer', of: toMostOfPeers('leasesPerSecond'), atLeast: 1 },
  ],
  run: (bench) => runThroughput(bench, 'uncontended-64', { callers: 64 }),
};
