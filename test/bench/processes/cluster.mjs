// A cluster of primaries, for the time of a scenario.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { findFreePort } from '../../../scripts/redis/free-port.mjs';
import { startRedisServer } from '../../../scripts/redis-server.mjs';

const SLOTS = 16_384;

/** @returns {Promise<import('../../../scripts/redis-server.mjs').RedisServer[]>} */
export async function startCluster(primaries) {
  const nodes = await Promise.all(
    Array.from({ length: primaries }, async () => {
      const busPort = await findFreePort();
      const args = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort), '--save', '', '--appendonly', 'no'];
      return { server: await startRedisServer({ args }), busPort };
    }),
  );
  const clients = nodes.map(({ server }) => new Redis(server.port));
  try {
    for (const [index, client] of clients.entries()) {
      const [from, to] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / primaries));
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to - 1);
      await clients[0].call('CLUSTER', 'MEET', '127.0.0.1', nodes[index].server.port, nodes[index].busPort);
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
  return nodes.map(({ server }) => server);
}
