// A cluster of primaries, for the time of a scenario.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { findFreeClusterPort } from '../../../scripts/redis/free-port.mjs';
import { startRedisServer } from '../../../scripts/redis-server.mjs';

const SLOTS = 16_384;

/** @returns {Promise<import('../../../scripts/redis-server.mjs').RedisServer[]>} */
export async function startCluster(primaries) {
  const nodes = await Promise.all(
    Array.from({ length: primaries }, async () => {
      const port = await findFreeClusterPort();
      const args = ['--cluster-enabled', 'yes', '--save', '', '--appendonly', 'no'];
      return startRedisServer({ port, args });
    }),
  );
  const clients = nodes.map(({ port }) => new Redis(port));
  try {
    for (const [index, client] of clients.entries()) {
      const [from, to] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / primaries));
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      // By range only since Redis 7.
      await client.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: to - from }, (_, slot) => from + slot));
      if (index > 0) await clients[0].call('CLUSTER', 'MEET', '127.0.0.1', nodes[index].port);
    }
    const isReady = async (client) => {
      const info = await client.call('CLUSTER', 'INFO');
      return [`slots_ok:${SLOTS}`, 'state:ok', `known_nodes:${primaries}`].every((each) =>
        info.includes(`cluster_${each}`),
      );
    };
    while (!(await Promise.all(clients.map(isReady))).every(Boolean)) await sleep(50);
  } finally {
    for (const client of clients) client.disconnect();
  }
  return nodes;
}
