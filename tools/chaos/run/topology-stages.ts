import { clusterFaults } from '../faults/cluster-faults.js';
import type { Fault } from '../faults/fault.js';
import { failOver } from '../faults/redis-faults.js';
import { quorumFaults } from '../faults/quorum-faults.js';
import { ChaosCluster } from '../servers/chaos-cluster.js';
import { QuorumSet } from '../servers/quorum-set.js';
import { SentinelSet } from '../../../test/support/redis/sentinel-set.js';
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
  const set = await QuorumSet.start(leaseMs);
  return {
    server: {
      ports: set.ports,
      admins: set.admins,
      optionsAt: (ports) => ({ quorum: set.urlsAt(ports), fencing: true, nodeTimeoutMs: leaseMs / 6 }),
    },
    faults: [...quorumFaults(set), ...others],
    unpromised: ['permits', 'fifo'],
    splitsVotes: true,
    [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
  };
}

/** How long a replica may take to have a grant: long, on a machine that is busy. */
const REPLICA_MS = 500;

/** A primary and its replica behind a sentinel. What counts is what the replica has, so that it may lag behind and take over. */
export async function durable(others: readonly Fault[]): Promise<Stage> {
  const set = await SentinelSet.start({ rights: ['+wait'] });
  return {
    server: {
      ports: [],
      optionsAt: () => ({ connection: set.connection, durability: { replicas: 1, timeoutMs: REPLICA_MS } }),
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
