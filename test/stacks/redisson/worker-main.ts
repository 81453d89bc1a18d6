// What runs in a Worker (worker.ts).
import { Redis } from 'ioredis';
import { Redisson } from 'node-redisson';
import { RedissonService } from '../../support/redisson/redisson-service.js';

/** One caller of a lock, whatever the library. */
export interface Caller {
  lock(name: string): Promise<void>;
  unlock(name: string): Promise<void>;
  forceUnlock(name: string): Promise<boolean>;
}

export type Library = 'redisson' | 'node-redisson';

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
};

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

  forceUnlock(name: string): Promise<boolean> {
    return caller.forceUnlock(name);
  },

  /** Adds 1 to a counter so many times, in two commands: nothing but the lock protects it. */
  async count(name: string, counter: string, times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      await caller.lock(name);
      const value = Number(await redis.get(counter));
      await redis.set(counter, value + 1);
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
