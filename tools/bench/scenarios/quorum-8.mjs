import { toContestant } from './ratios.mjs';
import { quorumHow, runQuorum, toBestQuorum } from './quorum.mjs';
import { throughputMetrics } from './throughput.mjs';

export const scenario = {
  name: 'quorum-8',
  title: 'A free lock on a quorum of five servers, eight callers at once',
  meaning: 'What it costs to ask five independent servers in place of one.',
  how: `One process, eight callers, each with a resource of its own. ${quorumHow}`,
  metrics: throughputMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  compare: [{ metric: 'leasesPerSecond', better: 'more' }],
  targets: [
    { text: 'leases/s, of the best peer', of: toBestQuorum, atLeast: 1.2 },
    { text: 'leases/s, of the raw pair', of: toContestant('raw-quorum', 'leasesPerSecond'), atLeast: 0.8 },
  ],
  run: (bench) => runQuorum(bench, 'quorum-8', 8),
};
