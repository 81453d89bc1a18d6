import { toContestant } from './ratios.mjs';
import { quorumHow, runQuorum, toBestQuorum, toRoundTrips } from './quorum.mjs';
import { throughputMetrics } from './throughput.mjs';

export const scenario = {
  name: 'quorum-1',
  title: 'A free lock on a quorum of five servers, one caller after the other',
  meaning: 'What it costs to ask five independent servers in place of one.',
  how: `One process, one caller. ${quorumHow}`,
  metrics: throughputMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  compare: [{ metric: 'leasesPerSecond', better: 'more' }],
  targets: [
    { text: 'leases/s, of the best peer', of: toBestQuorum, atLeast: 1.2 },
    { text: 'p50 of a lease, of two round trips to the slowest of a majority', of: toRoundTrips, atMost: 1.3 },
    { text: 'leases/s, of the raw pair', of: toContestant('raw-quorum', 'leasesPerSecond'), atLeast: 0.8 },
  ],
  run: (bench) => runQuorum(bench, 'quorum-1', 1),
};
