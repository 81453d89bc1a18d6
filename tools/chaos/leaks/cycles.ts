import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import {
  DistributedLock,
  DistributedSemaphore,
  fixedInterval,
  LeaderOnly,
  type Lease,
  LockError,
  ReadLock,
  type RedisLockService,
} from 'nestjs-redis-lock';

import { LEADERSHIP } from './census.js';

/** Two instances of one fleet, in one process. */
export interface Fleet {
  readonly a: RedisLockService;
  readonly b: RedisLockService;
  readonly jobs: Jobs;
  /** One that lives as long as the process. */
  readonly signal: AbortSignal;
}

/** One round of one way to use locks: it begins and ends with nothing held. `name` is new each time. */
export interface Cycle {
  readonly mode: string;
  /** Its share of the turns. Modes that wait for the clock have a lower one. */
  readonly weight: number;
  run(fleet: Fleet, name: string): Promise<unknown>;
}

const idle = async (): Promise<void> => undefined;

@Injectable()
export class Jobs {
  @DistributedLock((name: string) => name)
  async locked(_name: string): Promise<void> {}

  @ReadLock((name: string) => `${name}:read`)
  async reads(_name: string): Promise<void> {}

  @DistributedSemaphore({ key: (name: string) => `${name}:permits`, permits: 2 })
  async permitted(_name: string): Promise<void> {}

  @LeaderOnly(LEADERSHIP)
  async leads(): Promise<void> {}
}

export const CYCLES: readonly Cycle[] = [
  { mode: 'exclusive', weight: 20, run: async ({ a }, name) => (await a.acquire(name)).release() },
  { mode: 'one name again and again', weight: 5, run: ({ a }) => a.using('the same', idle) },
  { mode: 'tryAcquire', weight: 5, run: async ({ b }, name) => (await b.tryAcquire(name))?.release() },
  {
    mode: 'contended',
    weight: 5,
    run: ({ a, b }, name) => Promise.all([a, b, a, b, a, b].map((locks) => locks.using(name, idle))),
  },
  {
    mode: 'strict turns',
    weight: 3,
    run: ({ a, b }, name) => Promise.all([a, b, a, b].map((locks) => locks.using(name, { strictOrder: true }, idle))),
  },
  {
    mode: 'reentrant',
    weight: 5,
    run: ({ a }, name) => a.using(name, { mode: 'reentrant' }, () => a.using(name, { mode: 'reentrant' }, idle)),
  },
  {
    mode: 'readers and a writer',
    weight: 5,
    run: ({ a, b }, name) =>
      Promise.all(
        (
          [
            [a, 'read'],
            [b, 'read'],
            [a, 'write'],
            [b, 'read'],
            [a, 'read'],
          ] as const
        ).map(([locks, mode]) => locks.using(name, { mode }, idle)),
      ),
  },
  {
    mode: 'downgrade',
    weight: 5,
    run: async ({ a, b }, name) => {
      await using writer = await a.acquire(name, { mode: 'write' });
      await writer.downgrade();
      await b.using(name, { mode: 'read' }, idle);
    },
  },
  {
    mode: 'semaphore',
    weight: 5,
    run: ({ a, b }, name) =>
      Promise.all(
        [a, b, a, b].map((locks, index) => {
          return locks.semaphore(name, { permits: 2 }).using({ count: 1 + (index % 2) }, idle);
        }),
      ),
  },
  {
    mode: 'resize',
    weight: 2,
    run: async ({ a }, name) => {
      const semaphore = a.semaphore(name, { permits: 1 });
      await using _permit = await semaphore.acquire();
      await semaphore.resize(2);
      await (await semaphore.tryAcquire())?.release();
    },
  },
  {
    mode: 'several resources',
    weight: 5,
    run: ({ a, b }, name) =>
      Promise.all([a.using([`${name}:x`, `${name}:y`], idle), b.using([`${name}:y`, `${name}:x`], idle)]),
  },
  {
    mode: 'decorated',
    weight: 5,
    run: ({ jobs }, name) => Promise.all([jobs.locked(name), jobs.reads(name), jobs.permitted(name), jobs.leads()]),
  },
  {
    mode: 'time-outs and refusals',
    weight: 5,
    run: async ({ a, b }, name) => {
      await using _lease = await a.acquire(name);
      await Promise.all([0, 1, 3].map((waitMs) => refused(b.acquire(name, { waitMs }))));
      await refused(a.acquire([name, `${name}:other`], { waitMs: 1 }));
      await refused(b.acquire(name, { mode: 'shared' as 'read' }));
      await refused(b.semaphore(name, { permits: 2 }).acquire());
    },
  },
  {
    mode: 'aborts',
    weight: 5,
    run: async ({ a, b, signal }, name) => {
      const lease = await a.acquire(name);
      const abort = new AbortController();
      const waiting = [a, b].map((locks) => refused(locks.acquire(name, { signal: abort.signal })));
      const granted = [a, b].map((locks) => locks.using(name, { signal }, idle));
      abort.abort();
      await Promise.all(waiting);
      await lease.release();
      await Promise.all(granted);
    },
  },
  {
    mode: 'polling',
    weight: 2,
    run: async ({ a, b, signal }, name) => {
      const lease = await a.acquire(name);
      const polling = b.using(name, { retry: fixedInterval({ intervalMs: 1 }), signal }, idle);
      await refused(b.acquire(name, { retry: fixedInterval({ intervalMs: 1, maxAttempts: 2 }) }));
      await lease.release();
      await polling;
    },
  },
  {
    mode: 'waits until it is free',
    weight: 5,
    run: async ({ a, b, signal }, name) => {
      const lease = await a.acquire(name);
      const waiting = [b.waitUntilFree(name, { signal, waitMs: 2_000 }), b.waitUntilFree(name, { waitMs: 2_000 })];
      await refused(b.waitUntilFree(name, { waitMs: 1 }));
      await lease.release();
      await Promise.all(waiting);
    },
  },
  {
    mode: 'campaign',
    weight: 2,
    run: async ({ a, b, signal }, name) => {
      const options = { signal, onElected: idle, onDemoted: idle };
      const one = a.campaign(name, options);
      await one.whenElected();
      const other = b.campaign(name, options);
      await one.run(idle);
      await one.resign();
      await other.whenElected();
      await other.resign();
    },
  },
  {
    mode: 'singleton runs',
    weight: 1,
    run: ({ a, b }, name) => {
      const options = {
        job: name,
        tick: 'now',
        overlap: 'skip',
        onCrash: 'retry',
        claimTtlMs: 1_000,
        lock: {},
      } as const;
      return Promise.all([a, b].map((locks) => locks.runSingleton({ ...options, lock: { leaseMs: 400 } }, idle)));
    },
  },
  {
    mode: 'ended by an operator',
    weight: 2,
    run: async ({ a, b }, name) => {
      await using lease = await a.acquire(name);
      const next = b.acquire(name);
      await a.forceRelease(name, { fencingToken: lease.fencingToken });
      await (await next).release();
      await lease.verify();
      await a.inspect(name);
      await b.list({ prefix: name, limit: 1 });
    },
  },
  {
    mode: 'expired and overrun',
    weight: 1,
    run: async ({ a }, name) => {
      const fixed = await a.acquire(name, { leaseMs: 50, watchdog: false });
      const limited = await a.acquire(`${name}:limited`, { leaseMs: 60, maxHoldMs: 60 });
      await Promise.all([lost(fixed), lost(limited)]);
      await Promise.all([fixed.release(), limited.release()]);
    },
  },
  {
    mode: 'renewed',
    weight: 1,
    run: async ({ a }, name) => {
      await using lease = await a.acquire(name, { leaseMs: 150 });
      await sleep(60);
      // A busy machine may lose it, which is a valid end as well.
      if (lease.isHeld()) await lease.extend().catch(expectOurs);
    },
  },
  {
    mode: 'in the background',
    weight: 5,
    run: async ({ a }, name) => (await a.acquire(name, { backgroundRelease: true })).release(),
  },
  { mode: 'observed', weight: 1, run: async ({ a }) => a.observe(() => undefined)() },
];

/** @throws what is no error of ours */
async function refused(call: Promise<unknown>): Promise<void> {
  const outcome = await call.then(
    () => new Error('granted, and should not have been'),
    (error: unknown) => error,
  );
  expectOurs(outcome);
}

function expectOurs(error: unknown): void {
  if (!(error instanceof LockError)) throw error;
}

async function lost({ signal }: Lease): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}
