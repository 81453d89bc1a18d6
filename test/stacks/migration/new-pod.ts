// A process of the new release. The second argument is false for the witness, which takes our locks only.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { LeaseLostError, LockTimeoutError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { murlock, redisSemaphore, redlock, setNx } from 'nestjs-redis-lock/migration';
import { LEASE_MS, type Library, OLD_DATABASES, OLD_PREFIX, runPod } from './counting.js';

const [url, takesBoth] = [process.argv[2]!, process.argv[3] === 'true'];

const clients = OLD_DATABASES.map((db) => new Redis(url, { db, keyPrefix: OLD_PREFIX, lazyConnect: true }));
const [client] = clients as [Redis];
const alsoLocks = {
  redlock4: redlock({ client, key: (resource) => `locks:${resource}` }),
  redlock5: redlock({ clients, key: (resource) => `locks:${resource}` }),
  redisSemaphore: redisSemaphore({ client }),
  murlock: murlock({ client: `${url}/${OLD_DATABASES[0]}` }),
  setNx: setNx({ client, key: 'set-nx' }),
} satisfies Record<Library, unknown>;

const app = await NestFactory.createApplicationContext(
  RedisLockModule.forRoot({ connection: url, leaseMs: LEASE_MS, shutdown: { drainMs: 1_000 } }),
  { logger: false },
);
const locks = app.get(RedisLockService);

await runPod('new', url, async (library, work) => {
  const options = takesBoth ? { alsoLock: alsoLocks[library] } : {};
  await locks
    .using(library, options, (lease) => work(() => lease.assertHeld()))
    .catch((error: unknown) => {
      if (!(error instanceof LeaseLostError || error instanceof LockTimeoutError)) throw error;
    });
});
await app.close();
