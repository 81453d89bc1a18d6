import { NestFactory } from '@nestjs/core';
import { type Lease, LockAbortedError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { connectAdmin } from '../../../test/support/redis/admin-client.js';
import { LongestScript, type SlowScript } from '../world/longest-script.js';

export interface ChurnCount {
  /** How many came, waited, and gave up. */
  readonly waiters: number;
  /** The longest script of each round; none where all were shorter than what Redis notes. */
  readonly longest: readonly (SlowScript | undefined)[];
}

/** A machine that is busy makes a script long now and then. */
const ROUNDS = 3;
const RESOURCE = 'stuck';
/** Several, because the calls of one process stand in one place. */
const HASTY = 7;
/** They come one after another in the course of a round, and stay: what those before them have left behind has to be passed. */
const PATIENT = 4;
const LONGEST_WAIT_MS = 12;

/** An hour at a stuck holder, shortened: callers come, wait and give up. Then it releases, and the next one is granted. */
export async function countChurn({ waiters }: { waiters: number }): Promise<ChurnCount> {
  await using server = await startRedisServer();
  const admin = connectAdmin(server.port);
  const options = RedisLockModule.forRoot({
    connection: server.url,
    leaseMs: 10_000,
    attemptTimeoutMs: 10_000,
    shutdown: { drainMs: 0 },
  });
  const apps = await Promise.all(
    Array.from({ length: 1 + HASTY + PATIENT }, () =>
      NestFactory.createApplicationContext(options, { logger: ['error'] }),
    ),
  );
  const [holder, ...others] = apps.map((app) => app.get(RedisLockService)) as [RedisLockService, ...RedisLockService[]];
  const patient = others.splice(0, PATIENT);
  const script = new LongestScript(admin);
  const longest: (SlowScript | undefined)[] = [];
  let left = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const [from, to] = [round, round + 1].map((count) => (waiters * count) / ROUNDS) as [number, number];
      await script.take();
      const held = await holder.acquire(RESOURCE);
      const waiting: Promise<Lease>[] = [];
      const comeAndGo = async (locks: RedisLockService): Promise<void> => {
        while (left < to) {
          await giveUpSoon(locks);
          left++;
          const next = patient[waiting.length];
          if (next && left > from + ((to - from) * waiting.length) / PATIENT)
            waiting.push(next.acquire(RESOURCE, { waitMs: Infinity }));
        }
      };
      await Promise.all(others.map(comeAndGo));
      await held.release();
      for (const next of waiting) await (await next).release();
      longest.push(await script.take());
    }
    return { waiters: left, longest };
  } finally {
    await Promise.all(apps.map((app) => app.close()));
    admin.disconnect();
  }
}

async function giveUpSoon(locks: RedisLockService): Promise<void> {
  const giveUp = new AbortController();
  setTimeout(() => giveUp.abort(), 1 + Math.random() * LONGEST_WAIT_MS);
  const came: unknown = await locks.acquire(RESOURCE, { signal: giveUp.signal }).catch((error: unknown) => error);
  if (!(came instanceof LockAbortedError)) throw new Error('Nobody but the holder is granted it', { cause: came });
}
