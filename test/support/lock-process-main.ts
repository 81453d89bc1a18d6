// What runs in a LockProcess (lock-process.ts).
import { Redis } from 'ioredis';
import { LeaseLostError } from '../../lib/core/errors.js';
import type { Lease } from '../../lib/core/lease.js';
import { LockClient } from '../../lib/core/lock-client.js';
import type { LockOptions } from '../../lib/core/lock-options.js';
import { RedisLockStore } from '../../lib/redis/redis-lock-store.js';

/** What a lease says of itself. */
export interface LeaseView {
  isHeld: boolean;
  aborted: boolean;
  reason: string | undefined;
  fencingToken: number;
}

let locks: LockClient;
let redisUrl: string;
const leases = new Map<string, Lease>();

const verbs = {
  async start(url: string, leaseMs: number): Promise<void> {
    redisUrl = url;
    const store = new RedisLockStore({
      connection: url,
      keyPrefix: 'lock',
      instanceId: `process-${process.pid}`,
      leaseMs,
    });
    locks = new LockClient({ store, defaults: { leaseMs, waitMs: 20_000 } });
    await store.start(5_000);
  },

  async acquire(resource: string, options?: LockOptions): Promise<LeaseView> {
    const lease = await locks.acquire(resource, options);
    leases.set(resource, lease);
    return view(lease);
  },

  async release(resource: string): Promise<void> {
    await leases.get(resource)!.release();
  },

  state(resource: string): LeaseView {
    return view(leases.get(resource)!);
  },

  /** Stops the whole process, and looks at the lease before anything else runs when it is continued. */
  stop(resource: string): LeaseView {
    const lease = leases.get(resource)!;
    process.kill(process.pid, 'SIGSTOP');
    return view(lease);
  },

  /** Adds 1 to an unprotected counter again and again, each time under the lock. Gives the tokens by counter value. */
  async increment(resource: string, key: string, times: number, callers: number): Promise<[number, number][]> {
    const redis = new Redis(redisUrl);
    redis.on('error', () => undefined);
    const grants: [number, number][] = [];
    const call = async (): Promise<void> => {
      for (let i = 0; i < times; i++) {
        await locks.using(resource, undefined, async ({ fencingToken }) => {
          const value = Number(await redis.get(key)) + 1;
          await redis.set(key, value);
          grants.push([value, fencingToken]);
        });
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
    redis.disconnect();
    return grants;
  },

  /** After this, nothing of ours keeps the process alive. */
  async shutdown(): Promise<void> {
    await locks.shutdown(0);
    setImmediate(() => process.disconnect());
  },
};

export type Verbs = typeof verbs;

function view(lease: Lease): LeaseView {
  const isHeld = lease.isHeld();
  const { aborted, reason } = lease.signal;
  return {
    isHeld,
    aborted,
    reason: reason instanceof LeaseLostError ? reason.reason : undefined,
    fencingToken: lease.fencingToken,
  };
}

async function answer({ id, verb, args }: { id: number; verb: keyof Verbs; args: never[] }): Promise<void> {
  try {
    process.send!({ id, value: await (verbs[verb] as (...args: never[]) => unknown)(...args) });
  } catch (error) {
    process.send!({ id, error: String(error) });
  }
}

process.on('message', (question) => void answer(question as Parameters<typeof answer>[0]));
