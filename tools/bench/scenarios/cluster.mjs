// What the scenarios on a cluster share.
import { contestant, OURS } from '../contestants/index.mjs';
import { startCluster } from '../processes/cluster.mjs';
import { toContestant } from './ratios.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

const NODES = 3;
const EVERYONE = ['raw', OURS, 'redlock', 'redlock-universal'];

const HOW =
  `A cluster of ${NODES} primaries on this machine; acquire, release, and again, of a resource of one's own. Ours is ` +
  '`RedisLockModule.forRoot({ connection: { cluster } })`, all defaults; the others have a `Cluster` of ioredis with default ' +
  'options. In each round everyone has five slices of 200 ms, side by side.';

async function runCluster(bench, scenario, callers) {
  const servers = await startCluster(NODES);
  const everyone = EVERYONE.map((name) => contestant(name));
  try {
    const tuning = { cluster: servers.map(({ url }) => url) };
    return await runThroughput(bench, scenario, { callers, tuning }, everyone);
  } finally {
    // Before their servers.
    await Promise.all(EVERYONE.map((name) => bench.fleets.drop(name)));
    await Promise.all(servers.map((server) => server.stop()));
  }
}

export function clusterScenario({ callers, title, who }) {
  const name = `cluster-${callers}`;
  return {
    name,
    title: `A free lock on a cluster of three, ${title}`,
    meaning: 'What a lock costs where each resource is on a node of its own choice.',
    how: `${who} ${HOW}`,
    metrics: throughputMetrics,
    chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
    compare: [{ metric: 'leasesPerSecond', better: 'more' }],
    targets: [{ text: 'leases/s, of the raw pair', of: toContestant('raw', 'leasesPerSecond'), atLeast: 0.8 }],
    run: (bench) => runCluster(bench, name, callers),
  };
}
