// What cluster-1 and cluster-8 share.
import { contestant, OURS } from '../contestants/index.mjs';
import { startCluster } from '../processes/cluster.mjs';
import { runThroughput } from './throughput.mjs';

const NODES = 3;
const EVERYONE = ['raw-quorum', OURS, 'redlock', 'redlock-universal'];
const PEERS = ['redlock', 'redlock-universal'];

export const clusterHow =
  `A cluster of ${NODES} primaries on this machine; acquire, release, and again, of a resource of one's own. Ours is ` +
  '`RedisLockModule.forRoot({ connection: { cluster } })`, all defaults; the others have a `Cluster` of ioredis with default ' +
  'options. In each round everyone has five slices of 200 ms, side by side.';

export async function runCluster(bench, scenario, callers) {
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

/** Ours to the best of the peers. */
export const toBestOnCluster = (values) =>
  values[OURS]?.leasesPerSecond /
  Math.max(...PEERS.map((name) => values[name]?.leasesPerSecond).filter(Number.isFinite));
