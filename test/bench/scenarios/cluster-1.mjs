import { clusterHow, runCluster, toBestOnCluster } from './cluster.mjs';
import { toContestant } from './ratios.mjs';
import { throughputMetrics } from './throughput.mjs';

export const scenario = {
  name: 'cluster-1',
  title: 'A free lock on a cluster of three, one caller after the other',
  meaning: 'What a lock costs where each resource is on a node of its own choice.',
  how: `One process, one caller. ${clusterHow}`,
  metrics: throughputMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  compare: [{ metric: 'leasesPerSecond', better: 'more' }],
  targets: [
    { text: 'leases/s, of the best peer', of: toBestOnCluster, atLeast: 1.2 },
    { text: 'leases/s, of the raw pair', of: toContestant('raw-quorum', 'leasesPerSecond'), atLeast: 0.8 },
  ],
  run: (bench) => runCluster(bench, 'cluster-1', 1),
};
