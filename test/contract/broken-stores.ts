import type { LockStores } from '../../lib/kernel/lock-stores.js';
import type { AcquireReply, KeepReply, KeptPlace, LockOwner, Queueing } from '../../lib/kernel/store/lock-store.js';
import type { StoreListener } from '../../lib/kernel/store/message-health.js';
import type { LockState } from '../../lib/kernel/store/lock-state.js';
import type { Tick, TickClaim, TickReply } from '../../lib/features/jobs/core/job-claims.js';
import type { Watcher, WatchReply } from '../../lib/kernel/store/watch-store.js';
import { RedisJobStore } from '../../lib/features/jobs/redis/redis-job-store.js';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import type { StoreSubject } from './subject.js';
import { FakeClock } from '../support/world/fake-clock.js';
import type { JobPause } from '../../lib/features/jobs/core/job-state.js';

/** Parts that differ from the memory store. */
export interface Parts {
  locks?: typeof MemoryLockStore;
  jobs?: (locks: MemoryLockStore) => RedisJobStore;
  server?: (server: MemoryServer) => void;
  subject?: Partial<StoreSubject>;
}

/** The memory store, with some parts of it replaced. */
export function memoryWith({ locks: Locks = MemoryLockStore, jobs, server, subject }: Parts) {
  return (): StoreSubject => {
    const clock = new FakeClock();
    const place = new MemoryServer(clock);
    server?.(place);
    const opened: MemoryLockStore[] = [];
    return {
      open(instanceId): LockStores {
        const locks = new Locks({ instanceId, server: place });
        opened.push(locks);
        return {
          locks,
          jobs: jobs?.(locks) ?? new RedisJobStore(locks),
        };
      },
      kill: async (instanceId) => opened.find((locks) => locks.instanceId === instanceId)?.close(),
      now: async () => clock.wallNow(),
      pass: (ms) => clock.advance(ms),
      isEmpty: async () => place.isEmpty,
      close: async () => void (await Promise.all(opened.map((locks) => locks.close()))),
      ...subject,
    };
  };
}

/** Ways in which a lock store may be wrong. */
export const BROKEN_LOCKS: Readonly<Record<string, Parts>> = {
  'grants what another owner holds': {
    locks: class extends MemoryLockStore {
      override async acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
        const reply = await super.acquire(waiter, leaseMs, queueing);
        return reply.status === 'busy' ? { status: 'granted', fencingToken: Date.now() * 32 } : reply;
      }
    },
  },
  'does not compare when calls began': {
    locks: class extends MemoryLockStore {
      override acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
        if (!queueing) return super.acquire(waiter, leaseMs);
        const { sentAt, maxWaiters } = queueing;
        return super.acquire(waiter, leaseMs, { sentAt, maxWaiters });
      }
    },
  },
  'forgets the order of its queue': {
    // The head of a queue is its last place.
    server: ({ redis }) => {
      const zrange = redis.zrange.bind(redis);
      redis.zrange = (key, from, to, ...options) => {
        const members = zrange(key, from, to, ...options);
        if (`${from} ${to}` !== '0 1' || members.length < 2) return members;
        return zrange(key, 0, -1)
          .filter((member) => !/^[#!]/.test(member))
          .slice(-2);
      };
    },
  },
  'revives a lease that has ended by a renewal': {
    locks: class extends MemoryLockStore {
      override async renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean> {
        return (
          (await super.renew(owner, leaseMs, exactly)) || (await this.acquire(owner, leaseMs)).status === 'granted'
        );
      }
    },
  },
  'makes a lease shorter by a command that comes late': {
    locks: class extends MemoryLockStore {
      override renew(owner: LockOwner, leaseMs: number): Promise<boolean> {
        return super.renew(owner, leaseMs, true);
      }
    },
  },
  'renews one lease of a turn, and answers for all': {
    locks: class extends MemoryLockStore {
      #first: Promise<boolean> | undefined;

      override renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean> {
        this.#first ??= super.renew(owner, leaseMs, exactly).finally(() => (this.#first = undefined));
        return this.#first;
      }
    },
  },
  'mints the same token again': {
    locks: class extends MemoryLockStore {
      override async acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
        const reply = await super.acquire(waiter, leaseMs, queueing);
        return reply.status === 'granted' ? { ...reply, fencingToken: Date.UTC(2026, 0) * 3_200 } : reply;
      }
    },
  },
  'releases the lock of another owner': {
    locks: class extends MemoryLockStore {
      override async release(owner: LockOwner): Promise<boolean> {
        const [holder] = (await this.inspect(owner.resource)).holders;
        return (
          (await super.release(owner)) || (holder ? this.forceRelease(owner.resource, holder.fencingToken) : false)
        );
      }
    },
  },
  'lets a reader in beside a writer': {
    locks: class extends MemoryLockStore {
      override async acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
        const { mode } = await this.inspect(waiter.resource);
        const isReader = waiter.mode === 'read' && mode === 'write';
        return isReader ? { status: 'granted', fencingToken: 32 } : super.acquire(waiter, leaseMs, queueing);
      }
    },
  },
  'grants more permits than there are': {
    locks: class extends MemoryLockStore {
      override acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
        const { permits } = waiter;
        const asked = permits ? { ...waiter, permits: { ...permits, count: Math.min(permits.count, 1) } } : waiter;
        return super.acquire(asked, leaseMs, queueing);
      }
    },
  },
  'shows the owner id': {
    locks: class extends MemoryLockStore {
      readonly #owners: string[] = [];
      override acquire(waiter: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
        this.#owners.push(waiter.id);
        return super.acquire(waiter, leaseMs, queueing);
      }
      override async inspect(resource: string): Promise<LockState> {
        return Object.assign(await super.inspect(resource), { owners: this.#owners });
      }
    },
  },
  'tells a waiter nothing of its grant': {
    locks: class extends MemoryLockStore {
      override listen(listener: StoreListener): void {
        super.listen({ ...listener, granted: () => {} });
      }
    },
  },
  'puts a waiter that has withdrawn back into the queue when its place is kept': {
    locks: class extends MemoryLockStore {
      override async keepPlaces(places: readonly KeptPlace[], sentAt: number): Promise<readonly KeepReply[]> {
        const replies = await super.keepPlaces(places, sentAt);
        return Promise.all(
          places.map(async ({ waiter, leaseMs }, index) => {
            if ((await this.inspect(waiter.resource)).mode === null) return replies[index]!;
            const reply = await this.acquire(waiter, leaseMs, { sentAt, maxWaiters: 100 });
            return reply.status === 'queued' ? { ...reply, status: 'kept' as const } : replies[index]!;
          }),
        );
      }
    },
  },
  'keeps a place with the stamp of an older question': {
    locks: class extends MemoryLockStore {
      override keepPlaces(places: readonly KeptPlace[]): Promise<readonly KeepReply[]> {
        return super.keepPlaces(places, 0);
      }
    },
  },
  'tells a watcher that a held resource is free': {
    locks: class extends MemoryLockStore {
      override async watch(watcher: Watcher, watchMs: number): Promise<WatchReply> {
        return { ...(await super.watch(watcher, watchMs)), isFree: true };
      }
    },
  },
  'goes on after it was closed': {
    locks: class extends MemoryLockStore {
      override async close(): Promise<void> {}
    },
  },
  'leaves records behind': { subject: { isEmpty: async () => false } },
};

/** Ways in which a job store may be wrong. */
export const BROKEN_JOBS: Readonly<Record<string, Parts>> = {
  'grants a claimed tick to a second claimant': {
    jobs: (locks) =>
      new (class extends RedisJobStore {
        override async claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
          const reply = await super.claim(tick, claim);
          if (reply.status !== 'finished' && reply.status !== 'taken') return reply;
          return { status: 'granted', fencingToken: 32, attempt: 1 };
        }
      })(locks),
  },
  'starts a tick however late it is': {
    jobs: (locks) =>
      new (class extends RedisJobStore {
        override claim(tick: Tick, { due: _, ...claim }: TickClaim): Promise<TickReply> {
          return super.claim(tick, claim);
        }
      })(locks),
  },
  'does not know a pause when a tick is claimed': {
    jobs: (locks) =>
      new (class extends RedisJobStore {
        override async claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
          const reply = await super.claim(tick, claim);
          return reply.status === 'paused'
            ? super.claim({ ...tick, tick: `${tick.tick}!` }, { ...claim, note: undefined })
            : reply;
        }
      })(locks),
  },
  'forgets by whom a job was paused': {
    jobs: (locks) =>
      new (class extends RedisJobStore {
        override pause(resource: string, { by: _, ...pause }: Omit<JobPause, 'at'>): Promise<JobPause | undefined> {
          return super.pause(resource, pause);
        }
      })(locks),
  },
  'forgets a pause that is over with the next one': {
    jobs: (locks) =>
      new (class extends RedisJobStore {
        override async pause(resource: string, pause: Omit<JobPause, 'at'>): Promise<JobPause | undefined> {
          const standing = await super.pause(resource, pause);
          const { redis, keys } = locks.server;
          const pauses = redis.hget(keys.jobRecord(resource), 'pause');
          if (pauses) redis.hset(keys.jobRecord(resource), 'pause', pauses.split(' ').slice(-2).join(' '));
          return standing;
        }
      })(locks),
  },
};
