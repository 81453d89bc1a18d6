// A process of the old release: each library as its users use it.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { MurLockModule, MurLockService } from 'murlock';
import { Mutex } from 'redis-semaphore';
import { LEASE_MS, type Library, OLD_DATABASES, OLD_PREFIX, runPod, sleep } from './counting.js';

/** What is used of redlock 4, and of redlock 5: neither has types that can be found. */
interface Redlock {
  lock(resource: string, ttl: number): Promise<{ unlock(): Promise<void> }>;
  acquire(resources: string[], duration: number): Promise<{ release(): Promise<unknown> }>;
}
type RedlockClass = new (clients: Redis[], settings: object) => Redlock;

const require = createRequire(import.meta.url);
const Redlock4 = require('redlock') as RedlockClass;
const Redlock5 = (require('redlock5') as { default: RedlockClass }).default;

const url = process.argv[2]!;
/**
 * An old process that writes later than this after it began to lock has slept through its own lock. What is left is for the
 * way of a write to Redis, on a machine that has much else to do.
 */
const TRUSTED_MS = LEASE_MS / 2;
const RETRY_MS = 10;

const clients = OLD_DATABASES.map((db) => new Redis(url, { db, keyPrefix: OLD_PREFIX }));
const [client] = clients as [Redis];

const redlock4 = new Redlock4([client], { retryCount: -1, retryDelay: RETRY_MS, retryJitter: RETRY_MS });
const redlock5 = new Redlock5(clients, { retryCount: 0 });
const murlockModule = MurLockModule.forRoot({
  redisOptions: { url: `${url}/${OLD_DATABASES[0]}` },
  wait: RETRY_MS,
  maxAttempts: 1,
  blocking: true,
  ignoreUnlockFail: true,
  logLevel: 'none',
});
const murlock = (await NestFactory.createApplicationContext(murlockModule, { logger: false })).get(MurLockService);

const DELETE_OWN = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

async function workAndThen(work: () => Promise<void>, release: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } finally {
    await release();
  }
}

/** Does the work under the lock. Rejects where that is busy or lost. */
const under: Record<Library, (work: () => Promise<void>) => Promise<unknown>> = {
  async redlock4(work) {
    const lock = await redlock4.lock('locks:redlock4', LEASE_MS);
    await workAndThen(work, () => lock.unlock());
  },
  async redlock5(work) {
    const lock = await redlock5.acquire(['locks:redlock5'], LEASE_MS);
    await workAndThen(work, () => lock.release());
  },
  async redisSemaphore(work) {
    const mutex = new Mutex(client, 'redisSemaphore', {
      lockTimeout: LEASE_MS,
      retryInterval: RETRY_MS,
      // By default this error ends the process. `checkHeld` stops the work in its place.
      onLockLost: () => undefined,
    });
    await mutex.acquire();
    await workAndThen(work, () => mutex.release());
  },
  murlock: (work) => murlock.runWithLock('murlock', LEASE_MS, work),
  async setNx(work) {
    const value = randomUUID();
    while ((await client.set('set-nx', value, 'PX', LEASE_MS, 'NX')) !== 'OK') await sleep(RETRY_MS);
    await workAndThen(work, () => client.eval(DELETE_OWN, 1, 'set-nx', value));
  },
};

await runPod('old', url, async (library, work) => {
  // Not when the library says that it has the lock: the process may have slept since Redis gave it, which most do not see.
  const begunAt = performance.now();
  const checkHeld = (): void => {
    if (performance.now() - begunAt > TRUSTED_MS) throw new Error('this process has slept through its lock');
  };
  // A busy lock, or one that was lost: the old library says so by an error, and its user tries again.
  await under[library](() => work(checkHeld)).catch(() => sleep(RETRY_MS));
});
process.exit(0);
