// Where the servers are that locks are kept on, each behind a network.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startRedisServer } from '../../../../scripts/redis-server.mjs';
import { startCluster } from '../../processes/cluster.mjs';

const NO_DISK = ['--save', '', '--appendonly', 'no'];
const CLUSTER_NODES = 3;
const QUORUM_NODES = 5;
const REPLICA_READY_MS = 20_000;

/**
 * @typedef {object} Topology
 * @property {(process: string) => Promise<{ url: string, tuning: object }>} reach how a process of this name reaches it
 * @property {() => Promise<unknown>} stop
 */

/**
 * `lacks`: which operations there are not. `warmUps`: calls that are not counted. They open connections, and each server
 * gets the scripts.
 *
 * @type {Record<string, {
 *   label: string,
 *   start: (network: any, url: string) => Promise<Topology>,
 *   lacks?: (operation: string) => boolean,
 *   warmUps?: number,
 * }>}
 */
export const TOPOLOGIES = {
  single: { label: 'one Redis', start: startSingle },
  cluster: { label: 'cluster', start: startClusterOf, warmUps: 8 },
  quorum: {
    label: 'quorum',
    start: startQuorum,
    lacks: (operation) => operation.startsWith('a permit of a semaphore'),
  },
  durable: { label: '`durability`', start: startDurable },
};

async function startSingle(network, url) {
  return {
    reach: async (process) => ({ url: await network.way(process, 'redis', url), tuning: {} }),
    stop: async () => undefined,
  };
}

/** To the count of round trips it is one server: what its nodes tell each other is not delayed. */
async function startClusterOf(network) {
  const servers = await startCluster(CLUSTER_NODES);
  return {
    async reach(process) {
      const urls = await waysTo(network, process, servers, () => 'cluster');
      const natMap = Object.fromEntries(
        servers.map(({ port }, index) => [
          `127.0.0.1:${port}`,
          { host: '127.0.0.1', port: Number(new URL(urls[index]).port) },
        ]),
      );
      return { url: urls[0], tuning: { cluster: urls, natMap } };
    },
    stop: () => stopAll(servers),
  };
}

async function startQuorum(network) {
  const servers = await Promise.all(Array.from({ length: QUORUM_NODES }, () => startRedisServer({ args: NO_DISK })));
  return {
    async reach(process) {
      const urls = await waysTo(network, process, servers, (index) => `server ${index}`);
      return { url: urls[0], tuning: { quorum: urls } };
    },
    stop: () => stopAll(servers),
  };
}

/** The replica is as far from its primary as the processes are. */
async function startDurable(network) {
  // Else the primary waits 5 s for more replicas before it sends its data to the first.
  const args = [...NO_DISK, '--repl-diskless-sync-delay', '0'];
  const servers = await Promise.all([startRedisServer({ args }), startRedisServer({ args })]);
  const [primary, replica] = servers;
  const { port } = new URL(await network.way('replica', 'redis', primary.url));
  const redis = new Redis(replica.url);
  try {
    await redis.replicaof('127.0.0.1', Number(port));
    const deadline = Date.now() + REPLICA_READY_MS;
    while (!(await redis.info('replication')).includes('master_link_status:up')) {
      if (Date.now() > deadline) throw new Error('The replica has not reached its primary');
      await sleep(20);
    }
  } finally {
    redis.disconnect();
  }
  return {
    reach: async (process) => ({
      url: await network.way(process, 'redis', primary.url),
      // As many round trips as with less time, in which a busy machine may not get to the replica.
      tuning: { durability: { replicas: 1, timeoutMs: 500 } },
    }),
    stop: () => stopAll(servers),
  };
}

function waysTo(network, process, servers, nameOf) {
  return Promise.all(servers.map(({ url }, index) => network.way(process, nameOf(index), url)));
}

function stopAll(servers) {
  return Promise.all(servers.map((server) => server.stop()));
}
