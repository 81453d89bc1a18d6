import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { OURS } from '../contestants/index.mjs';
import { toContestant, toMostOfPeers } from './ratios.mjs';
import { runOnServers, throughputMetrics } from './throughput.mjs';

const NODES = 5;
const EVERYONE = ['ping', 'raw-quorum', OURS, 'redlock', 'redlock-universal'];

/** How long a lease takes, two round trips, to two round trips until the slowest of a majority has answered. */
const toRoundTrips = {
  text: 'p50 of a lease, of two round trips to the slowest of a majority',
  of: (values) => values[OURS]?.p50Us / (2 * values.ping?.p50Us),
  atMost: 1.3,
};

export const quorums = [1, 8].map((callers) => ({
  name: `quorum-${callers}`,
  title: `A free lock on a quorum of five servers, callers: ${callers}`,
  how:
    `One process; each caller has a resource of its own. ${NODES} servers of their own on this machine. For \`PING\` an operation is one ` +
    'round trip to all of them until a majority has answered; for the others acquire and release at all of them. Ours is ' +
    '`RedisLockModule.forRoot({ quorum })`, all defaults; the peers have the same servers and wait for a majority as they do by ' +
    'default. In each round everyone has five slices of 200 ms, side by side.',
  metrics: throughputMetrics,
  targets: [
    { text: 'leases/s, of the best peer', of: toMostOfPeers('leasesPerSecond'), atLeast: 1.2 },
    ...(callers === 1 ? [toRoundTrips] : []),
    { text: 'leases/s, of the raw pair', of: toContestant('raw-quorum', 'leasesPerSecond'), atLeast: 0.8 },
  ],
  run: (bench) => runQuorum(bench, `quorum-${callers}`, callers),
}));

async function runQuorum(bench, scenario, callers) {
  const start = () => startRedisServer({ args: ['--save', '', '--appendonly', 'no'] });
  const servers = await Promise.all(Array.from({ length: NODES }, start));
  return runOnServers(bench, scenario, servers, EVERYONE, {
    callers,
    tuning: { quorum: servers.map(({ url }) => url) },
  });
}
