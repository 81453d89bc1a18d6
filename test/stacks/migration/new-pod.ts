// A process of the new release: docs/migration/both-at-once.md. Its arguments are the name of the old library, and "alone" for
// the witness, which takes our locks only.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { LeaseLostError, LockError, LockTimeoutError, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { OldLocksModule } from './both/murlock.js';
import { OldLocks, Orders } from './both/orders.js';
import { RedisSemaphoreLocks } from './both/redis-semaphore.js';
import { RedlockLocks } from './both/redlock.js';
import { SetNxLocks } from './both/set-nx.js';
import { Counting, LEASE_MS, type Library, sleep } from './counting.js';

const [, , library, isAlone] = process.argv as unknown as [string, string, Library, string?];
const url = process.env.REDIS_URL!;
const counting = new Counting('new', url);

const oldLocks = {
  redlock: { useClass: RedlockLocks },
  'redis-semaphore': { useClass: RedisSemaphoreLocks },
  'set-nx': { useClass: SetNxLocks },
};
const none: OldLocks = { using: (_name, work) => work(), take: async () => true };

const app = await NestFactory.createApplicationContext(
  {
    module: class Root {},
    imports: [
      ScheduleModule.forRoot(),
      RedisLockModule.forRoot({
        connection: url,
        leaseMs: LEASE_MS,
        waitMs: 30_000,
        shutdown: { drainMs: 1_000 },
      }),
      ...(library === 'murlock' && !isAlone ? [OldLocksModule] : []),
    ],
    providers: [
      Orders,
      ...(isAlone ? [{ provide: OldLocks, useValue: none }] : []),
      ...(library === 'murlock' || isAlone ? [] : [{ provide: OldLocks, ...oldLocks[library] }]),
    ],
  },
  { logger: false },
);
const locks = app.get(RedisLockService);
const orders = app.get(Orders);
const checkHeld = (): void => locks.currentOrThrow().assertHeld();
orders.sendAll = () => counting.run(checkHeld);

await counting.untilEnd(async (way, id, work) => {
  const locked = way === 'method' ? orders.pay(id, () => work(checkHeld)) : orders.ship(id, () => work(checkHeld));
  await locked.catch((error: unknown) => {
    // Others are of the old library, which did not get its lock in time, or has lost it.
    if (error instanceof LockError && !(error instanceof LeaseLostError || error instanceof LockTimeoutError))
      throw error;
    return sleep(10);
  });
});
await app.close();
process.exit(0);
