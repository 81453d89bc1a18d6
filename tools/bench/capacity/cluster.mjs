// What a message costs the nodes of a cluster, as PUBLISH and as SPUBLISH, and how an instance uses a cluster.
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { redisUsage } from '../measure/redis-usage.mjs';
import { startCluster } from '../processes/cluster.mjs';
import { measureLoad } from './stage.mjs';

/** How messages are sent: many at a time, or so few that each wakes the nodes up. */
const AT_ONCE = 50;
const APART = { messages: 300, everyMs: 10 };
const MESSAGE = 'probe 0123456789012345678901 123';

/**
 * @param {number[]} sizes how many primaries
 * @param {{ messages: number, instances: number, load: object, forMs: number, settleMs: number }} options
 */
export async function measureClusters(sizes, { messages, instances, load, forMs, settleMs }) {
  const clusters = [];
  for (const primaries of sizes) {
    const nodes = await startCluster(primaries);
    const urls = nodes.map(({ url }) => url);
    try {
      const published = await messagesOn(nodes, 'PUBLISH', messages);
      const sharded = await messagesOn(nodes, 'SPUBLISH', messages);
      const servers = { urls, connection: { cluster: urls } };
      // A node keeps something of each script and command that it has seen: that is its own memory, not that of the fleet.
      await measureLoad(servers, { instances, ...load, leaseMs: 3_000 }, { forMs: 1_000, settleMs: 2_000 });
      const used = await measureLoad(servers, { instances, ...load }, { forMs, settleMs });
      clusters.push({ primaries, published, sharded, instances, load, used });
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  }
  return clusters;
}

/** What the nodes have used for each message together, beside what they use when there are none. */
async function messagesOn(nodes, command, messages) {
  const clients = nodes.map(({ port }) => new Redis(port));
  // A channel in the first slot, which the first node has. The listener is on the same node, so it gets both kinds.
  const channel = 'lock:inbox:{3560}';
  const listener = new Redis(nodes[0].port);
  try {
    await listener.call(command === 'PUBLISH' ? 'SUBSCRIBE' : 'SSUBSCRIBE', channel);
    const idle = await usedIn(nodes, clients, () => sleep(2_000));
    const send = () => clients[0].call(command, channel, MESSAGE);
    const together = await usedIn(nodes, clients, async () => {
      for (let sent = 0; sent < messages; sent += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, send));
    });
    const apart = await usedIn(nodes, clients, async () => {
      for (let sent = 0; sent < APART.messages; sent++) await Promise.all([send(), sleep(APART.everyMs)]);
    });
    const more = (used, field) => used[field] - (idle[field] / idle.seconds) * used.seconds;
    return {
      cpuUs: (more(together, 'cpuMs') * 1000) / messages,
      aloneCpuUs: (more(apart, 'cpuMs') * 1000) / APART.messages,
      // Of one node in a second.
      idleCpuUs: (idle.cpuMs * 1000) / idle.seconds / nodes.length,
      ...(together.busBytes !== undefined && { busBytes: Math.max(0, more(together, 'busBytes') / messages) }),
    };
  } finally {
    for (const client of [...clients, listener]) client.disconnect();
  }
}

async function usedIn(nodes, clients, work) {
  const look = () =>
    Promise.all(
      nodes.map(async (node, index) => ({ ...(await redisUsage(clients[index])), written: await writtenBy(node) })),
    );
  const before = await look();
  await work();
  // The other nodes read the messages of the bus a little later.
  await sleep(300);
  const after = await look();
  const total = (of) => after.reduce((sum, usage, index) => sum + of(usage) - of(before[index]), 0);
  const busBytes = after[0].written === undefined ? undefined : total(({ written, sent }) => written - sent);
  return { seconds: (after[0].at - before[0].at) / 1000, cpuMs: total(({ cpuMs }) => cpuMs), busBytes };
}

/** All bytes that this process has written, where the system tells: on Linux. */
async function writtenBy({ pid }) {
  const text = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
  const bytes = /^wchar: (\d+)/m.exec(text)?.[1];
  return bytes === undefined ? undefined : Number(bytes);
}
