import { toContestant, toMostOfPeers } from './ratios.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

export const scenario = {
  name: 'uncontended-64',
  title: 'Free locks, 64 callers at once',
  meaning:
    'How much of a core locks take from a busy instance: 64 requests at a time, each with a resource of its own.',
  how: 'As above, with 64 callers in one process that never meet. The process is the limit here, not the round trip.',
  metrics: throughputMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  compare: [{ metric: 'leasesPerSecond', better: 'more' }],
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
