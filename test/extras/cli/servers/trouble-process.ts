// A process of an application that gets into the trouble that findings.slow.test.ts asks for.
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { LockClient } from '../../../../lib/kernel/lock-client.js';
import { RedisLockStore } from '../../../../lib/redis/redis-lock-store.js';

let locks: LockClient;
let jobs: RedisJobStore;
let hasLeaked = false;

const verbs = {
  async start(connection: string, instanceId: string, leaseMs: number): Promise<void> {
    const store = new RedisLockStore({ connection, keyPrefix: 'lock', instanceId, leaseMs });
    const observers = [({ type }: { type: string }) => void (hasLeaked ||= type === 'leaked')];
    locks = new LockClient({ store, observers, defaults: { leaseMs, waitMs: 120_000, unavailableMs: Infinity } });
    jobs = new RedisJobStore(store);
    locks.jobs.records(jobs);
    await store.start(10_000);
  },

  async hold(resource: string, watchdog = true): Promise<void> {
    void locks.using(resource, { group: 'Orders.ship', watchdog }, () => new Promise(() => {}));
    await locks.inspect(resource);
  },

  wait(resource: string, calls: number): void {
    for (let call = 0; call < calls; call++) locks.acquire(resource, { group: 'Orders.pay' }).catch(() => {});
  },

  /** Takes one resource, and wants the other a moment later. */
  cross(first: string, then: string): void {
    const work = async (): Promise<void> => {
      await sleep(300);
      await locks.acquire(then);
    };
    locks.using(first, { group: 'Bank.move' }, work).catch(() => {});
  },

  nest(first: string, then: string): Promise<void> {
    return locks.using(first, undefined, () => locks.using(then, undefined, async () => {}));
  },

  /** Forgets a lease. */
  async leak(resource: string): Promise<void> {
    await locks.withOrigin(verbs.leak, (origin) => locks.acquire(resource, undefined, origin));
    // An unwatched lease is not seen by the garbage collector.
    while (!hasLeaked) {
      await sleep(100);
      (globalThis as { gc?: () => void }).gc!();
    }
  },

  async flap(name: string): Promise<void> {
    const leadership = locks.campaign(name);
    for (let turn = 0; turn < 6; turn++) {
      const term = await leadership.whenElected();
      if (turn < 5) await term.release();
    }
  },

  /** Makes the job known, as one of this process. */
  async own(job: string): Promise<void> {
    locks.jobs.missedTicks(jobs).add({
      job,
      historySize: 20,
      graceMs: Infinity,
      onMissed: 'skip',
      catchUpWindowMs: 0,
      schedule: () => undefined,
      runOwed: () => Promise.resolve(),
    });
    const schedule = '0 3 * * * ';
    await jobs.register([{ resource: `cron:${job}`, schedule, next: Date.now() + 3_600_000 }]);
  },

  async fail(job: string, times: number): Promise<void> {
    await verbs.own(job);
    for (let run = 0; run < times; run++) {
      const options = {
        job,
        overlap: 'wait',
        onCrash: 'skip',
        claimTtlMs: 60_000,
        historyMessages: true,
        lock: {},
      } as const;
      const tick = `${Date.now()}-${run}`;
      const work = (): never => {
        throw new TypeError('no toner');
      };
      await locks.jobs
        .runs(jobs)
        .run({ ...options, tick }, work)
        .catch(() => {});
    }
  },

  block(forMs: number): void {
    for (const until = performance.now() + forMs; performance.now() < until;);
  },
};

export type TroubleVerbs = typeof verbs;

async function answer({ id, verb, args }: { id: number; verb: keyof TroubleVerbs; args: never[] }): Promise<void> {
  try {
    process.send!({ id, value: await (verbs[verb] as (...args: never[]) => unknown)(...args) });
  } catch (error) {
    process.send!({ id, error: String(error) });
  }
}

process.on('message', (question) => void answer(question as Parameters<typeof answer>[0]));
