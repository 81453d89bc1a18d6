// What quorum-1 and quorum-8 share.
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { contestant, OURS } from '../contestants/index.mjs';
import { runThroughput } from './throughput.mjs';

const NODES = 5;
const EVERYONE = ['ping', 'raw-quorum', OURS, 'redlock', 'redlock-universal'];
const PEERS = ['redlock', 'redlock-universal'];

export const quorumHow =
  `${NODES} servers of their own on this machine. For \`PING\` an operation is one round trip to all of them until a majority has answered; ` +
  'for the others acquire and release at all of them. Ours is `RedisLockModule.forRoot({ quorum })`, all defaults; the peers have the ' +
  'same servers and wait for a majority as they do by default. In each round everyone has five slices of 200 ms, side by side.';

export async function runQuorum(bench, scenario, callers) {
  const servers = await Promise.all(
    Array.from({ length: NODES }, () => startRedisServer({ args: ['--save', '', '--appendonly', 'no'] })),
  );
  const everyone = EVERYONE.map((name) => contestant(name));
  try {
    const tuning = { quorum: servers.map(({ url }) => url) };
    return await runThroughput(bench, scenario, { callers, tuning }, everyone);
  } finally {
    // Before their servers.
    await Promise.all(EVERYONE.map((name) => bench.fleets.drop(name)));
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** Ours to the best of those that know quorums. */
export const toBestQuorum = (values) =>
  values[OURS]?.leasesPerSecond /
  Math.max(...PEERS.map((name) => values[name]?.leasesPerSecond).filter(Number.isFinite));

/** How long a lease takes, two round trips, to two round trips until the slowest of a majority has answered. */
export const toRoundTrips = (values) => values[OURS]?.p50Us / (2 * values.ping?.p50Us);
