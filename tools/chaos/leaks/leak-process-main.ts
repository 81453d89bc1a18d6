// The program of leaks.long.test.ts, started with --expose-gc: two applications of the published package in one process. They
// use locks in every mode, and it prints the counts that have grown by then. Its arguments are the URL of Redis and how many leases.
import 'reflect-metadata';
import { type EventEmitter, getEventListeners, setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import {
  DistributedLock,
  DistributedSemaphore,
  fixedInterval,
  LeaderOnly,
  LockError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { ENDS_BY_ITSELF } from '../world/leftovers.js';

const [url, cycles] = process.argv.slice(2) as [string, string];
const QUIET_WITHIN_MS = 15_000;
const HEAP_MAY_GROW = 0.05;
/** The number of concurrent rounds. */
const LANES = 12;
/** The leadership that one of the two always has. */
const LEADERSHIP = 'the leader';

/** Every ioredis client of this process: the package keeps its own to itself. */
const clients = new Set<Redis>();
const { connect } = Redis.prototype;
Redis.prototype.connect = function (this: Redis, ...args) {
  clients.add(this);
  return connect.apply(this, args);
};
const admin = new Redis(url);

@Injectable()
class Jobs {
  @DistributedLock((name: string) => name)
  async locked(_name: string): Promise<void> {}

  @DistributedSemaphore({ key: (name: string) => `${name}:permits`, permits: 2 })
  async permitted(_name: string): Promise<void> {}

  @LeaderOnly(LEADERSHIP)
  async leads(): Promise<void> {}
}

const moduleOptions = { connection: url, leaseMs: 10_000, attemptTimeoutMs: 10_000, shutdown: { drainMs: 0 } };

@Module({ imports: [RedisLockModule.forRoot(moduleOptions)], providers: [Jobs] })
class AppModule {}

const start = () => NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
const apps = [await start(), await start()] as const;
const [a, b] = [apps[0].get(RedisLockService), apps[1].get(RedisLockService)];
const jobs = apps[0].get(Jobs);
const { signal } = new AbortController();
// Like any signal that many listen to.
setMaxListeners(0, signal);
const idle = async (): Promise<void> => undefined;

/** @throws what is no error of ours */
async function refused(call: Promise<unknown>): Promise<void> {
  const outcome = await call.then(
    () => new Error('granted, and should not have been'),
    (error: unknown) => error,
  );
  if (!(outcome instanceof LockError)) throw outcome;
}

/** Each begins and ends with nothing held. `name` is new each time. */
const MODES: readonly ((name: string) => Promise<unknown>)[] = [
  async (name) => (await a.acquire(name, { backgroundRelease: true })).release(),
  (name) => Promise.all([a, b, a, b].map((locks) => locks.using(name, { signal }, idle))),
  (name) => a.using(name, { mode: 'reentrant' }, () => a.using(name, { mode: 'reentrant' }, idle)),
  async (name) => {
    await using writer = await a.acquire(name, { mode: 'write' });
    await writer.downgrade();
    await b.using(name, { mode: 'read' }, idle);
  },
  (name) => Promise.all([a, b, a].map((locks) => locks.semaphore(name, { permits: 2 }).using({}, idle))),
  (name) => Promise.all([a.using([`${name}:x`, `${name}:y`], idle), b.using([`${name}:y`, `${name}:x`], idle)]),
  (name) => Promise.all([jobs.locked(name), jobs.permitted(name), jobs.leads()]),
  async (name) => {
    const lease = await a.acquire(name);
    const abort = new AbortController();
    const waiting = [a, b].map((locks) => refused(locks.acquire(name, { signal: abort.signal })));
    await Promise.all([0, 1, 3].map((waitMs) => refused(b.acquire(name, { waitMs }))));
    abort.abort();
    const polling = b.using(name, { retry: fixedInterval({ intervalMs: 1 }), signal }, idle);
    const free = b.waitUntilFree(name, { signal, waitMs: 2_000 });
    await a.forceRelease(name, { fencingToken: lease.fencingToken });
    await Promise.all([...waiting, polling, free, lease.release()]);
  },
  async (name) => {
    const options = { signal, onElected: idle, onDemoted: idle };
    const one = a.campaign(name, options);
    await one.whenElected();
    const other = b.campaign(name, options);
    await one.resign();
    await other.whenElected();
    await other.resign();
  },
  (name) => {
    const run = { job: name, tick: 'now', overlap: 'skip', onCrash: 'retry', claimTtlMs: 1_000, lock: {} } as const;
    return Promise.all([a, b].map((locks) => locks.runSingleton(run, idle)));
  },
  async (name) => {
    const lost = await a.acquire(name, { leaseMs: 50, watchdog: false });
    if (!lost.signal.aborted) await new Promise((resolve) => lost.signal.addEventListener('abort', resolve));
    await lost.release();
  },
];

let leases = 0;
for (const locks of [a, b]) locks.observe(({ type }) => void (type === 'acquired' && leases++));
let named = 0;

async function run(target: number): Promise<void> {
  const until = leases + target;
  const lane = async (): Promise<void> => {
    while (leases < until) await MODES[named % MODES.length]!(`resource:${named++}`);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const listenersOf = (emitter: EventEmitter): number =>
  sum(emitter.eventNames().map((name) => emitter.listenerCount(name)));

/** What this process and its Redis have, by kind. */
async function count(): Promise<Record<string, number>> {
  const keys = await admin.keys('*');
  const isExpected = (key: string): boolean =>
    key === 'lock:fence' || key.startsWith(`lock:{leader:${LEADERSHIP}}`) || ENDS_BY_ITSELF.test(key);
  return {
    handles: process.getActiveResourcesInfo().length,
    'listeners of the process': listenersOf(process),
    'listeners of clients': sum([...clients].map(listenersOf)),
    'listeners of sockets': sum([...clients].map(({ stream }) => (stream ? listenersOf(stream) : 0))),
    'listeners of the signal': getEventListeners(signal, 'abort').length,
    clients: [...clients].filter(({ status }) => status !== 'end').length,
    keys: keys.filter((key) => !isExpected(key)).length,
    subscriptions: ((await admin.pubsub('CHANNELS', '*')) as string[]).length,
  };
}

/** Those that have grown. What is pending ends within some time. */
async function grownSince(before: Record<string, number>): Promise<string[]> {
  for (const giveUpAt = performance.now() + QUIET_WITHIN_MS; ; await sleep(100)) {
    const grown = Object.entries(await count()).filter(([name, value]) => value > before[name]!);
    if (grown.length === 0 || performance.now() > giveUpAt)
      return grown.map(([name, value]) => `${name}: ${before[name]} before, ${value} after`);
  }
}

/** Bytes in use, when all that can be collected is. */
async function heapUsed(): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < 5; round++) {
    globalThis.gc!();
    await sleep(20);
    least = Math.min(least, process.memoryUsage().heapUsed);
  }
  return least;
}

await Promise.race([a, b].map((locks) => locks.leadership(LEADERSHIP)!.whenElected()));
// For the heap to reach its size, and for everything to be compiled.
await run(Number(cycles) * 0.75);
await grownSince({ ...(await count()), keys: 0 });
const before = await count();
const heapBefore = await heapUsed();
await run(Number(cycles));
const grown = await grownSince(before);
const growth = (await heapUsed()) / heapBefore - 1;
if (growth > HEAP_MAY_GROW) grown.push(`heap: ${(growth * 100).toFixed(1)} % more than before`);

await Promise.all(apps.map((app) => app.close()));
admin.disconnect();
console.log(JSON.stringify(grown));
