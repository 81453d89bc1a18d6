// Counts the cost of one free lock. Needs --expose-gc, and a young generation that holds it all.
import { Redis } from 'ioredis';
import { lockedBy } from './locked.mjs';

const WARM_UP = 2_000;

/** @returns {Promise<Record<string, number>>} for each lease; alone on its Redis */
export async function run(world, { leases, resource }) {
  const locked = lockedBy(await world.client());
  const some = async (count) => {
    for (let index = 0; index < count; index++) await locked(resource, () => {});
  };
  const redis = new Redis(world.url);
  await some(WARM_UP);
  const before = await countersOf(redis);
  globalThis.gc();
  const heapBefore = process.memoryUsage().heapUsed;
  await some(leases);
  const allocated = process.memoryUsage().heapUsed - heapBefore;
  const after = await countersOf(redis);
  // A second request costs every contestant the same, and little.
  await redis.quit();
  return {
    'commands, with those of scripts': (after.commands - before.commands) / leases,
    'bytes to Redis': (after.received - before.received) / leases,
    'bytes from Redis': (after.sent - before.sent) / leases,
    'bytes allocated': allocated / leases,
  };
}

async function countersOf(redis) {
  const info = `${await redis.info('stats')}${await redis.info('commandstats')}`;
  const numbers = [...info.matchAll(/^cmdstat_[^:]+:calls=(\d+)/gm)].map(([, calls]) => Number(calls));
  const field = (name) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)[1]);
  return {
    commands: numbers.reduce((all, each) => all + each, 0),
    received: field('total_net_input_bytes'),
    sent: field('total_net_output_bytes'),
  };
}
