import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { insist } from '../../../test/support/redis/admin-client.js';

export type EvictingPolicy = 'allkeys-random' | 'volatile-ttl';

/** Keys to evict in place of locks, so that Redis finds some and does not refuse writes. Not under a lock prefix. */
const BALLAST = Array.from({ length: 8 }, (_, i) => `chaos-ballast-${i}`);
const BALLAST_BYTES = 64 * 1024;
/** Locks expire long before, so `volatile-ttl` takes them first. */
const BALLAST_TTL_S = 86_400;
/** The memory to free each round: dozens of locks. (Redis's usage fluctuates by some kB.) */
const TOO_MUCH_BYTES = 16_000;
const ROUND_MS = 10;

/** Answers every command that could use memory with an error (OOM) for this time. */
export async function refuseMemory(admin: Redis, ms: number): Promise<void> {
  try {
    await configure(admin, 'maxmemory', 1);
    await sleep(ms);
  } finally {
    await configure(admin, 'maxmemory', 0);
  }
}

/** Makes Redis evict keys for this time. Returns their number, without our own ballast. */
export async function evict(admin: Redis, ms: number, policy: EvictingPolicy): Promise<number> {
  const until = performance.now() + ms;
  let evicted = 0;
  try {
    await configure(admin, 'maxmemory-policy', policy);
    // Looks at all of a small keyspace, not at a sample of 5: what ends first is found.
    await configure(admin, 'maxmemory-samples', 50);
    do evicted += await evictSome(admin);
    while (performance.now() < until);
  } finally {
    await configure(admin, 'maxmemory-policy', 'noeviction');
    await configure(admin, 'maxmemory-samples', 5);
    await insist(() => admin.unlink(BALLAST));
  }
  return evicted;
}

async function evictSome(admin: Redis): Promise<number> {
  for (const key of BALLAST) {
    await insist(() => admin.set(key, randomBytes(BALLAST_BYTES), 'EX', BALLAST_TTL_S, 'NX'));
  }
  const before = await figure(admin, 'evicted_keys');
  await configure(admin, 'maxmemory', (await figure(admin, 'used_memory')) - TOO_MUCH_BYTES);
  await sleep(ROUND_MS);
  await configure(admin, 'maxmemory', 0);
  const ballastLost = BALLAST.length - (await insist(() => admin.exists(BALLAST)));
  return Math.max(0, (await figure(admin, 'evicted_keys')) - before - ballastLost);
}

/** The defaults are what a restart brings too, so it does not matter when one comes in between. */
function configure(admin: Redis, name: string, value: string | number): Promise<unknown> {
  return insist(() => admin.config('SET', name, String(value)));
}

async function figure(admin: Redis, name: string): Promise<number> {
  const info = await insist(() => admin.info());
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)![1]);
}
