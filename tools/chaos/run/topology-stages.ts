import { clusterFaults } from '../faults/cluster-faults.js';
import type { Fault } from '../faults/fault.js';
import { networkFaults } from '../faults/network-faults.js';
import { failOver, redisFaults } from '../faults/redis-faults.js';
import { quorumFaults } from '../faults/quorum-faults.js';
import { ChaosCluster } from '../servers/chaos-cluster.js';
import { ChaosRedis } from '../servers/chaos-redis.js';
import { QuorumSet } from '../servers/quorum-set.js';
import { untilCaughtUp } from '../servers/replication.js';
import { ReplicatedRedis } from '../../../test/support/redis/replicated-redis.js';
import { SentinelSet } from '../../../test/support/redis/sentinel-set.js';
import { standalone } from '../world/standalone.js';
import { DATABASE } from './stages.js';
import type { Stage } from './chapter.js';

/**
 * Three primaries with a replica each, which lose nothing.
 *
 * @param others what happens to the workers, wherever their locks are
 */
export async function clustered(others: readonly Fault[]): Promise<Stage> {
  const cluster = await ChaosCluster.start();
  return {
    server: { ports: [], admins: cluster.admins, optionsAt: () => ({ connection: cluster.connection }) },
    faults: [...clusterFaults(cluster), ...others],
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

/** Five independent servers, each behind a network of its own. There are no queues in a common order, and no semaphores. */
export async function voting(others: readonly Fault[], leaseMs: number): Promise<Stage> {
  const set = await QuorumSet.start(leaseMs, DATABASE);
  return {
    server: {
      ports: set.ports,
      admins: set.admins,
      optionsAt: (ports) => ({ quorum: { connections: set.urlsAt(ports), fencing: true, nodeTimeoutMs: leaseMs / 6 } }),
    },
    faults: [...quorumFaults(set), ...others],
    unpromised: ['permits', 'fifo'],
    splitsVotes: true,
    [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
  };
}

/** Time for a replica to get a grant, generous for a busy machine. */
const REPLICA_MS = 500;
const DURABILITY = { durability: { replicas: 1, timeoutMs: REPLICA_MS } };

/** A primary and its replica behind a sentinel. What counts is what the replica has, so that it may lag behind and take over. */
export async function durable(others: readonly Fault[]): Promise<Stage> {
  const set = await SentinelSet.start({ rights: ['+wait'], database: DATABASE });
  return {
    server: {
      ports: [],
      optionsAt: () => ({ connection: set.connection, ...DURABILITY }),
      get admins() {
        return [set.admin()];
      },
    },
    faults: [
      { ...failOver(set, true), kind: 'durability: fail-over to a lagging replica', breaksPromises: false },
      { ...failOver(set, false), kind: 'durability: fail-over to a current replica' },
      ...others,
    ],
    [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
  };
}

/** Faults that keep the replica connected: after a restart it would have to copy all data first. */
const REPLICA_STAYS = /SIGSTOP|CLIENT|SCRIPT|BUSY/;

/** A Redis and its replica, and what happens to all the connections that `durability` has. */
export async function durableConnections(): Promise<Stage> {
  const redis = await ChaosRedis.start({ persistence: 'aof', rights: ['+wait'], database: DATABASE });
  const replica = await ReplicatedRedis.start([], DATABASE);
  await replica.follow(redis);
  // Until then no grant is confirmed, whatever the faults are.
  await untilCaughtUp(replica.admin, redis.admin);
  const server = standalone(redis);
  return {
    server: { ...server, optionsAt: (ports) => ({ ...server.optionsAt(ports), ...DURABILITY }) },
    faults: [...networkFaults, ...redisFaults(redis).filter(({ kind }) => REPLICA_STAYS.test(kind))],
    async [Symbol.asyncDispose]() {
      await replica[Symbol.asyncDispose]();
      await redis[Symbol.asyncDispose]();
    },
  };
}
