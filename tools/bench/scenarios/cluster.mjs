import { OURS } from '../contestants/index.mjs';
import { startCluster } from '../processes/cluster.mjs';
import { toContestant } from './ratios.mjs';
import { runOnServers, throughputMetrics } from './throughput.mjs';

const NODES = 3;
const EVERYONE = ['raw', OURS, 'redlock', 'redlock-universal'];

export const clusters = [1, 8, 64].map((callers) => ({
  name: `cluster-${callers}`,
  title: `A free lock on a cluster of three, callers: ${callers}`,
  how:
    `One process. A cluster of ${NODES} primaries on this machine; acquire, release, and again, of a resource of one's own. Ours is ` +
    '`RedisLockModule.forRoot({ connection: { cluster } })`, all defaults; the others have a `Cluster` of ioredis with default ' +
    'options. In each round everyone has five slices of 200 ms, side by side.',
  metrics: throughputMetrics,
  targets: [{ text: 'leases/s, of the raw pair', of: toContestant('raw', 'leasesPerSecond'), atLeast: 0.8 }],
  run: (bench) => runCluster(bench, `cluster-${callers}`, callers),
}));

async function runCluster(bench, scenario, callers) {
  const servers = await startCluster(NODES);
  return runOnServers(bench, scenario, servers, EVERYONE, {
    callers,
    tuning: { cluster: servers.map(({ url }) => url) },
  });
}
