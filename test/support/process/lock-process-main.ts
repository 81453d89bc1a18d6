// The program of a LockProcess (lock-process.ts).
import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockAbortedError } from '../../../lib/kernel/api/errors.js';
import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { Contention } from '../../../lib/features/fleet/core/contention/contention.js';
import type { ExplainOptions } from '../../../lib/features/fleet/core/explain/explainer.js';
import type { LockExplanation } from '../../../lib/features/fleet/core/explain/explanation.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { LockState } from '../../../lib/kernel/store/lock-state.js';
import type { ResourceNames } from '../../../lib/kernel/api/resource.js';
import { fence } from '../../../lib/fence.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { SYSTEM_CLOCK } from '../../../lib/kernel/util/clock.js';
import { lockConnection } from '../redis/lock-user.js';
import { SlowClock } from '../world/slow-clock.js';
import { machineNow } from '../expect/machine-now.js';
import { type MixedSection, type MixedWork, take, type TakeOptions, workMixed } from '../expect/mixed-sections.js';

/** The state of a lease. */
export interface LeaseView {
  isHeld: boolean;
  aborted: boolean;
  reason: string | undefined;
  fencingToken: number;
}

/** One run of work under the lock. Its times are the machine's monotonic clock, the same in all processes. */
export interface Section {
  fencingToken: number;
  /** The value in the file before its write. */
  value: number;
  from: number;
  to: number;
}

export interface FileWork {
  callers: number;
  times?: number;
  forMs?: number;
  options?: LockOptions;
}

/** The end of a lock that was held until the test released it. */
export interface HoldReport {
  fencingToken: number;
  /** The first and the last time that the lease was seen to be held, on the machine's monotonic clock. */
  from: number;
  to: number;
  reason: string | undefined;
  /** Writes with its token to a witness that refuses tokens smaller than the largest so far. */
  whileHeld: Writes;
  afterLoss: Writes;
  releaseError: string | undefined;
}

export interface Writes {
  accepted: number;
  refused: number;
}

/** KEYS: the largest token, and all that were accepted. */
const WITNESS = `
if tonumber(redis.call('GET', KEYS[1]) or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[1])
return 1
`;

let locks: LockClient;
let jobs: RedisJobStore;
let redisUrl: string;
let notebook: Redis | undefined;
const leases = new Map<string, Lease>();
/** Callbacks that end the holds of a test. */
const letGo = new Map<string, () => void>();

const verbs = {
  /** @param slowness of the clock of its locks */
  async start(url: string, leaseMs: number, slowness?: number): Promise<void> {
    redisUrl = url;
    const store = new RedisLockStore({
      connection: lockConnection(url),
      keyPrefix: 'lock',
      instanceId: `process-${process.pid}`,
      leaseMs,
    });
    const clock = slowness === undefined ? SYSTEM_CLOCK : new SlowClock(slowness);
    locks = new LockClient({ store, clock, defaults: { leaseMs, waitMs: 20_000, unavailableMs: Infinity } });
    jobs = new RedisJobStore(store);
    await store.start(5_000);
  },

  async acquire(resource: ResourceNames, options?: TakeOptions): Promise<LeaseView> {
    return keep(await take(locks, resource, options), String(resource));
  },

  /** Waits until a resource is free, so many times at once. */
  async waitUntilFree(resource: string, waitMs: number, callers = 1): Promise<void> {
    const wait = () => locks.watches.waitUntilFree(resource, { waitMs });
    await Promise.all(Array.from({ length: callers }, wait));
  },

  /** Runs one tick of a job, if this process gets it. Gives the token of the run, or null. */
  async runTick(job: string, at: number): Promise<number | null> {
    const due = { at, maxClockSkewMs: 60_000 };
    const tick = new Date(at).toISOString();
    const options = { job, tick, due, overlap: 'wait', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;
    return (await locks.jobs.runs(jobs).run(options, ({ fencingToken }) => fencingToken)) ?? null;
  },

  /** Pauses a job for all processes, until it is resumed. */
  async pauseJob(job: string): Promise<void> {
    await locks.jobs.records(jobs).pause(job, new Set([job]), { by: `process-${process.pid}` });
  },

  async resumeJob(job: string): Promise<void> {
    await locks.jobs.records(jobs).resume(job, new Set([job]));
  },

  async release(resource: ResourceNames): Promise<void> {
    await leases.get(String(resource))!.release();
  },

  state(resource: ResourceNames): LeaseView {
    return view(leases.get(String(resource))!);
  },

  async downgrade(resource: string): Promise<void> {
    await leases.get(resource)!.downgrade();
  },

  async campaign(name: string): Promise<void> {
    await locks.campaign(name).whenElected();
  },

  list(prefix: string): Promise<LockState[]> {
    return locks.operators.list({ prefix });
  },

  explain(resource: string, options?: ExplainOptions): Promise<LockExplanation> {
    return locks.operators.explain(resource, options);
  },

  /** The first question begins to count. */
  contention(): Contention {
    return locks.operators.contention();
  },

  forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    return locks.operators.forceRelease(resource, { fencingToken });
  },

  mixed(work: MixedWork): Promise<MixedSection[]> {
    return workMixed(locks, work);
  },

  /** Stops the whole process, and looks at the lease before anything else runs when it is continued. */
  stop(resource: string): LeaseView {
    const lease = leases.get(resource)!;
    process.kill(process.pid, 'SIGSTOP');
    return view(lease);
  },

  /**
   * Checks that it holds the lock, then writes under a guard and to a plain key. `pause` stops the whole process in
   * between, so that it acts on the earlier check.
   */
  async checkAndWrite(resource: string, pause: boolean): Promise<{ guarded: string; unguarded: string }> {
    const redis = new Redis(redisUrl);
    const lease = leases.get(resource)!;
    const token = lease.fencingToken;
    lease.assertHeld();
    if (pause) process.kill(process.pid, 'SIGSTOP');
    try {
      const guard = { key: `${resource}-fence`, token };
      const guarded = fence.guard(redis, guard, [['SET', `${resource}-guarded`, token]]);
      return {
        guarded: await guarded.then(String, (error: { code?: string }) => String(error.code)),
        unguarded: await redis.set(`${resource}-unguarded`, token),
      };
    } finally {
      redis.disconnect();
    }
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

  /**
   * Each caller adds 1 to the number in a file, a number of times or until the time is up. Only the lock protects the
   * file. Returns the values read.
   */
  async countInFile(resource: string, file: string, work: FileWork): Promise<Section[]> {
    const { callers, times = Infinity, forMs = Infinity, options } = work;
    const sections: Section[] = [];
    // The time begins with the first lease.
    const isOver = (): boolean => sections.length > 0 && machineNow() > sections[0]!.from + forMs;
    const count = async ({ fencingToken }: Lease): Promise<void> => {
      const from = machineNow();
      const value = Number(readFileSync(file, 'utf8'));
      await new Promise(setImmediate);
      writeFileSync(file, String(value + 1));
      sections.push({ fencingToken, value, from, to: machineNow() });
    };
    const call = async (): Promise<void> => {
      for (let i = 0; i < times && !isOver(); i++) {
        await locks.using(resource, { waitMs: 60_000, ...options }, count);
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
    return sections;
  },

  /**
   * Holds the lock until released by the test, and keeps writing to the witness carelessly: even after it has lost the
   * lock, then at least once. Returns after the release.
   */
  async hold(resource: string, options?: TakeOptions): Promise<HoldReport> {
    const redis = new Redis(redisUrl);
    redis.on('error', () => undefined);
    let isOver = false;
    letGo.set(resource, () => (isOver = true));
    const lease = await take(locks, resource, { waitMs: 60_000, ...options });
    const { fencingToken } = lease;
    const from = machineNow();
    const report = { fencingToken, from, to: from, whileHeld: noWrites(), afterLoss: noWrites() };
    const hasWrittenLate = (): boolean => report.afterLoss.accepted + report.afterLoss.refused > 0;
    for (; !isOver || !(lease.isHeld() || hasWrittenLate()); await sleep(3)) {
      const at = machineNow();
      const wasHeld = lease.isHeld();
      if (wasHeld) report.to = at;
      const accepted = await redis.eval(WITNESS, 2, `${resource}-witness`, `${resource}-log`, fencingToken);
      // Lost in between: the write may have been before or after it.
      if (wasHeld !== lease.isHeld()) continue;
      (wasHeld ? report.whileHeld : report.afterLoss)[accepted === 1 ? 'accepted' : 'refused']++;
    }
    const { reason } = view(lease);
    const releaseError = await lease.release().then(() => undefined, String);
    redis.disconnect();
    return { ...report, reason, releaseError };
  },

  /**
   * Renders a page for a request, where only the newest request counts. Adds the start, the store and the end to the
   * list `log`, stores the number of the request, and returns the outcome.
   */
  async render(page: string, request: number, forMs: number): Promise<string> {
    const redis = (notebook ??= new Redis(redisUrl));
    const note = (what: string): Promise<number> => redis.rpush('log', `${what} ${process.pid} ${request}`);
    try {
      return await locks.using(
        page,
        { cancellable: true, onBusy: 'cancelHolder' },
        async ({ signal, fencingToken }) => {
          await note(`begin ${fencingToken}`);
          try {
            await sleep(forMs, undefined, { signal }).catch(() => {});
            // It does not stop in the middle of a step.
            await sleep(3);
            if (signal.aborted) throw signal.reason as Error;
            await redis
              .multi()
              .set('result', request)
              .rpush('log', `store ${fencingToken} ${process.pid} ${request}`)
              .exec();
            return 'stored';
          } finally {
            await note(`end ${fencingToken}`);
          }
        },
      );
    } catch (error) {
      return error instanceof LockAbortedError ? error.reason : String(error);
    }
  },

  /** Resolves when Redis has executed every command that was sent before. */
  async caughtUp(resource: string): Promise<void> {
    await locks.inspect(resource);
  },

  letGo(resource: string): void {
    letGo.get(resource)!();
  },

  /** After this, nothing of ours keeps the process alive. */
  async shutdown(): Promise<void> {
    await locks.shutdown(0);
    setImmediate(() => process.disconnect());
  },
};

export type Verbs = typeof verbs;

function noWrites(): Writes {
  return { accepted: 0, refused: 0 };
}

function keep(lease: Lease, name: string): LeaseView {
  leases.set(name, lease);
  return view(lease);
}

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
