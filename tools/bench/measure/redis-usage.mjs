import { setTimeout as sleep } from 'node:timers/promises';

const LOOKS = 5;
const LOOK_MS = 300;

/** Returns the totals of a server since its start, and its current state. */
export async function redisUsage(redis) {
  // One answer: two snapshots differ by the same number of bytes, which `usageBetween` subtracts.
  const text = await redis.info('everything');
  const read = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? 0);
  const calls = (name) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return {
    at: performance.now(),
    cpuMs: (read('used_cpu_user') + read('used_cpu_sys')) * 1000,
    received: read('total_net_input_bytes'),
    sent: read('total_net_output_bytes'),
    usec: Object.fromEntries(
      [...text.matchAll(/^cmdstat_([^:]+):calls=\d+,usec=(\d+)/gm)].map(([, name, usec]) => [name, Number(usec)]),
    ),
    scripts: calls('evalsha'),
    published: calls('publish'),
    connections: read('connected_clients'),
    clientBytes: read('mem_clients_normal'),
    dataBytes: read('used_memory') - read('mem_clients_normal'),
    answerBytes: text.length,
  };
}

/**
 * The memory of one server, when it tells apart what its connections have: that is counted up to a second late, and counts as data
 * until then.
 */
export async function settledUsage(redis) {
  let least = await redisUsage(redis);
  for (let look = 1; look < LOOKS; look++) {
    await sleep(LOOK_MS);
    const usage = await redisUsage(redis);
    if (usage.dataBytes < least.dataBytes) least = usage;
  }
  return least;
}

/** @returns what was used between the two, without what the first one has cost; and what has come */
export function usageBetween(before, after) {
  const of = (name) => after[name] - before[name];
  return {
    seconds: of('at') / 1000,
    cpuMs: of('cpuMs'),
    received: of('received'),
    sent: of('sent') - before.answerBytes,
    usec: Object.fromEntries(Object.entries(after.usec).map(([name, usec]) => [name, usec - (before.usec[name] ?? 0)])),
    scripts: of('scripts'),
    published: of('published'),
    connections: of('connections'),
    clientBytes: of('clientBytes'),
    dataBytes: of('dataBytes'),
  };
}
