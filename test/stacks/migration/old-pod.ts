// A process of the old release: a library as its users use it. The argument is its name.
import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Redis } from 'ioredis';
import { MurLockModule, MurLockService } from 'murlock';
import { Mutex } from 'redis-semaphore';
import Redlock from 'redlock';
import { Counting, LEASE_MS, type Library, sleep } from './counting.js';

const url = process.env.REDIS_URL!;
const library = process.argv[2] as Library;
const client = new Redis(url);
const counting = new Counting('old', url);

/**
 * An old process that writes later than this after it began to lock has slept through its own lock. What is left is for the
 * way of a write to Redis, on a machine that has much else to do.
 */
const TRUSTED_MS = LEASE_MS / 2;
const RETRY_MS = 10;

type Plain = () => Promise<void>;

interface Locks {
  /** Waits for the lock. Rejects where it is lost. */
  using(name: string, work: Plain): Promise<unknown>;
  /** Takes the lock without waiting. Rejects where it is busy or lost. */
  tryUsing(name: string, work: Plain): Promise<unknown>;
}

async function workAndThen(work: Plain, release: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } finally {
    await release();
  }
}

function withRedlock(): Locks {
  const redlock = new Redlock([client], { retryDelay: RETRY_MS, retryJitter: RETRY_MS, retryCount: 300 });
  return {
    using: (name, work) => redlock.using([`locks:${name}`], LEASE_MS, work),
    async tryUsing(name, work) {
      const lock = await redlock.acquire([`locks:${name}`], LEASE_MS, { retryCount: 0 });
      await workAndThen(work, () => lock.release());
    },
  };
}

function withMutexes(): Locks {
  const locked = async (name: string, work: Plain, acquireAttemptsLimit?: number): Promise<void> => {
    const mutex = new Mutex(client, name, {
      lockTimeout: LEASE_MS,
      retryInterval: RETRY_MS,
      // By default this error ends the process. `checkHeld` stops the work in its place.
      onLockLost: () => undefined,
      ...(acquireAttemptsLimit && { acquireAttemptsLimit }),
    });
    await mutex.acquire();
    await workAndThen(work, () => mutex.release());
  };
  return { using: locked, tryUsing: (name, work) => locked(name, work, 1) };
}

async function withMurlock(): Promise<Locks> {
  const services = [true, false].map(async (blocking) => {
    const options = { redisOptions: { url }, wait: RETRY_MS, maxAttempts: 1, blocking, ignoreUnlockFail: true };
    const module = MurLockModule.forRoot({ ...options, logLevel: 'none' });
    return (await NestFactory.createApplicationContext(module, { logger: false })).get(MurLockService);
  });
  const [patient, hasty] = (await Promise.all(services)) as [MurLockService, MurLockService];
  return {
    using: (name, work) => patient.runWithLock(name, LEASE_MS, work),
    tryUsing: (name, work) => hasty.runWithLock(name, LEASE_MS, work),
  };
}

const DELETE_OWN = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

function byHand(): Locks {
  const locked = async (name: string, work: Plain, isPatient: boolean): Promise<void> => {
    const value = randomUUID();
    while ((await client.set(`lock:${name}`, value, 'PX', LEASE_MS, 'NX')) !== 'OK') {
      if (!isPatient) throw new Error('taken');
      await sleep(RETRY_MS);
    }
    await workAndThen(work, () => client.eval(DELETE_OWN, 1, `lock:${name}`, value));
  };
  return { using: (name, work) => locked(name, work, true), tryUsing: (name, work) => locked(name, work, false) };
}

const makes: Record<Library, () => Locks | Promise<Locks>> = {
  redlock: withRedlock,
  'redis-semaphore': withMutexes,
  murlock: withMurlock,
  'set-nx': byHand,
};
const locks = await makes[library]();

/** Not from when the library says that it has the lock: the process may have slept since Redis gave it, which most do not see. */
function sinceNow(): () => void {
  const begunAt = performance.now();
  return () => {
    if (performance.now() - begunAt > TRUSTED_MS) throw new Error('this process has slept through its lock');
  };
}

@Injectable()
class Jobs {
  @Cron('*/2 * * * * *')
  async outbox(): Promise<void> {
    // The timers of different processes do not fire together.
    await sleep(Math.random() * 50);
    const checkHeld = sinceNow();
    await locks.tryUsing('outbox', () => counting.run(checkHeld)).catch(() => {});
  }
}

await NestFactory.createApplicationContext(
  { module: class Root {}, imports: [ScheduleModule.forRoot()], providers: [Jobs] },
  { logger: false },
);

await counting.untilEnd(async (way, id, work) => {
  const name = way === 'method' ? `order:${id}` : `parcel:${id}`;
  const checkHeld = sinceNow();
  // The old library throws if a lock was lost or not acquired in time, and its user tries again.
  await locks.using(name, () => work(checkHeld)).catch(() => sleep(RETRY_MS));
});
process.exit(0);
