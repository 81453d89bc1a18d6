// What runs in a Worker (worker.ts).
import { Redis } from 'ioredis';
import { Redisson } from 'node-redisson';
import type { Lease } from '../../../lib/core/api/lease.js';
import { LockClient } from '../../../lib/core/lock-client.js';
import { AlsoLocks } from '../../../lib/migration/both/also-locks.js';
import { settle } from '../../../lib/core/util/promises.js';
import { redisson } from '../../../lib/migration/redisson.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { RedissonService } from '../../support/redisson/redisson-service.js';

/** One caller of a lock, whatever the library. */
export interface Caller {
  lock(name: string): Promise<void>;
  unlock(name: string): Promise<void>;
  forceUnlock(name: string): Promise<boolean>;
}

/** The actor, the other library, and ours with and without its `alsoLock`. */
export type Library = 'redisson' | 'node-redisson' | 'ours' | 'ours alone';

const CALLERS: Record<Library, (port: number, leaseMs: number) => Caller> = {
  redisson(port, watchdogMs) {
    return RedissonService.connect(port, { watchdogMs }).thread(1);
  },

  'node-redisson'(port, leaseMs) {
    const service = new Redisson({ redis: { options: { port } }, lockWatchdogTimeout: BigInt(leaseMs) });
    const locks = new Map<string, ReturnType<Redisson['getLock']>>();
    const lockOf = (name: string) => {
      if (!locks.has(name)) locks.set(name, service.getLock(name));
      return locks.get(name)!;
    };
    return {
      lock: (name) => lockOf(name).lock(),
      unlock: (name) => lockOf(name).unlock(),
      forceUnlock: (name) => lockOf(name).forceUnlock(),
    };
  },

  ours: (port, leaseMs) => ours(port, leaseMs, redisson({ client: { port } })),
  'ours alone': (port, leaseMs) => ours(port, leaseMs),
};

function ours(port: number, leaseMs: number, alsoLock?: ReturnType<typeof redisson>): Caller {
  const instanceId = `process-${process.pid}`;
  const store = new RedisLockStore({ connection: { port }, keyPrefix: 'lock', instanceId, leaseMs });
  const defaults = { leaseMs, waitMs: 60_000, alsoLock };
  const locks = new LockClient({ store, defaults, secondLocks: (runtime) => new AlsoLocks(runtime) });
  const started = store.start(5_000);
  const leases = new Map<string, Lease>();
  return {
    async lock(name) {
      await started;
      leases.set(name, await locks.acquire(name));
    },
    unlock: (name) => leases.get(name)!.release(),
    forceUnlock: () => Promise.reject(new Error('Ours has no such call')),
  };
}

let redis: Redis;
let caller: Caller;

const verbs = {
  start(library: Library, port: number, leaseMs: number): void {
    redis = new Redis(port);
    caller = CALLERS[library](port, leaseMs);
  },

  async lock(name: string): Promise<void> {
    await caller.lock(name);
  },

  async unlock(name: string): Promise<void> {
    await caller.unlock(name);
  },

  /** What has arrived by now is read. */
  async readAll(): Promise<void> {
    await settle();
    await settle();
  },

  forceUnlock(name: string): Promise<boolean> {
    return caller.forceUnlock(name);
  },

  /**
   * Adds 1 to a counter so many times: reads it, and then writes it and a log of what was written. Nothing but the lock
   * protects it.
   */
  async count(name: string, counter: string, times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      await caller.lock(name);
      const value = Number(await redis.get(counter)) + 1;
      await redis.multi().set(counter, value).rpush(`${counter}-log`, value).exec();
      await caller.unlock(name);
    }
  },
};

export type Verbs = typeof verbs;

async function answer({ id, verb, args }: { id: number; verb: keyof Verbs; args: never[] }): Promise<void> {
  try {
    process.send!({ id, value: await (verbs[verb] as (...args: never[]) => unknown)(...args) });
  } catch (error) {
    process.send!({ id, error: String(error) });
  }
}

process.on('message', (question) => void answer(question as Parameters<typeof answer>[0]));
process.on('disconnect', () => process.exit());
