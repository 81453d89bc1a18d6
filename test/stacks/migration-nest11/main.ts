// Lives through the stories of all three libraries, and prints what it saw: Jest cannot load two majors of Nest.
import 'reflect-metadata';
import { type DynamicModule, type INestApplicationContext, SetMetadata, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redlock, RedlockService } from '@nestjs-redis/lock';
import { Redis } from 'ioredis';
import { MurLockService } from 'murlock';
import { DistributedLock, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { createClient } from 'redis';
import { crowd, type Locked, sleep } from '../migration-guides/stories.js';

const url = process.argv[2]!;
process.env.REDIS_URL = url;
const client = new Redis(url);

const start = (module: Type | DynamicModule): Promise<INestApplicationContext> =>
  NestFactory.createApplicationContext(module, { logger: false });

type Work = () => Promise<void>;
const outcome = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: Error) => error.constructor.name,
  );

/** The old code, or the new. */
interface Version<T> {
  readonly AppModule: Type;
  readonly Service: Type<T>;
}

/**
 * Longer than any lease here. Leases with renewal, of 3 s, outlast a stall of a second, and the others, of 1 s, end in
 * time for a second call.
 */
const LONG_MS = 3_500;

async function startPods<T>({ AppModule, Service }: Version<T>): Promise<[T, T]> {
  const [one, two] = [await start(AppModule), await start(AppModule)];
  return [one.get<T>(Service), two.get<T>(Service)];
}

interface Orders {
  pay(order: { id: string }, work: Work): Promise<void>;
  ship(id: string, work: Work): Promise<void>;
}

async function ofMurlock(version: Version<Orders>) {
  const [one, two] = await startPods(version);
  const keysInPay: string[] = [];
  const listKeys = async (): Promise<void> => void keysInPay.push(...(await client.keys('*pay:*')));
  return {
    payments: await crowd(100, [(work) => one.pay({ id: '7' }, work), (work) => two.pay({ id: '7' }, work)]),
    parcels: await crowd(100, [(work) => one.ship('7', work), (work) => two.ship('7', work)]),
    longPayments: await crowd(LONG_MS, [(work) => one.pay({ id: '8' }, work), (work) => two.pay({ id: '8' }, work)]),
    longPayment: await outcome(one.pay({ id: '9' }, () => sleep(1_200))),
    withoutId: await outcome(one.pay({} as { id: string }, listKeys)),
    keysInPay,
  };
}

interface Stock {
  count(work: Work): Promise<void>;
  move(from: string, to: string, work: Work): Promise<void>;
}

async function ofNestjsRedis(version: Version<Stock>) {
  const [one, two] = await startPods(version);
  return {
    counts: await crowd(100, [(work) => one.count(work), (work) => two.count(work)]),
    longMoves: await crowd(LONG_MS, [(work) => one.move('a', 'b', work), (work) => two.move('b', 'a', work)]),
    longCounts: await crowd(LONG_MS, [(work) => one.count(work), (work) => two.count(work)]),
  };
}

class Theirs {
  @Redlock('default')
  run(work: Work) {
    return work();
  }

  @Redlock('route')
  @SetMetadata('route', '/')
  async handle() {}
}

class Ours {
  @DistributedLock('default')
  run(work: Work) {
    return work();
  }

  @DistributedLock('route')
  @SetMetadata('route', '/')
  async handle() {}
}

/** Runs a decorator without options, and checks the mark that one below it has left. */
async function byDefault(Service: Type<Theirs>, AppModule: Type) {
  const app = await start({ module: class Root {}, imports: [AppModule], providers: [Service] });
  const service = app.get<Theirs>(Service);
  const calls = Array.from({ length: 3 }, (): Locked => (work) => service.run(work));
  return { calls: await crowd(1_200, calls), route: Reflect.getMetadata('route', service.handle) as unknown };
}

/** The error of a call that cannot reach Redis. */
async function withoutRedis() {
  const theirs = new RedlockService([createClient({ url })], { maxRetryAttempts: 0 }); // never connected
  const ours = await start(RedisLockModule.forRoot({ connection: 'redis://localhost:1', waitMs: 100 }));
  return {
    theirs: await theirs.withLock('a', 1_000, async () => {}).catch((error: Error) => error.message),
    ours: await outcome(ours.get(RedisLockService).using('a', () => {})),
  };
}

// Hidden from the compiler, for which `redlock` is the other stack's.
const REDLOCK_4: string = './redlock4/stories.js';
const { tellRedlock4 } = (await import(REDLOCK_4)) as {
  tellRedlock4(): Promise<Redlock4Story>;
};
interface Redlock4Story {
  readonly transfers: { ran: number; atOnce: number };
  readonly longTransfers: { ran: number; atOnce: number };
  readonly withoutRetry: string;
}

const old = {
  murlock: await import('./murlock/before.js'),
  nestjsRedis: await import('./nestjs-redis/before.js'),
};
const our = { murlock: await import('./murlock/after.js'), nestjsRedis: await import('./nestjs-redis/after.js') };

/** A call inside a call, for the same key. */
async function nested() {
  const theirs = (await start(old.murlock.AppModule)).get(MurLockService);
  const ours = (await start(our.murlock.AppModule)).get(RedisLockService);
  return {
    theirs: await outcome(theirs.runWithLock('n', 9_000, () => theirs.runWithLock('n', 9_000, async () => {}))),
    ours: await outcome(ours.using('n', () => ours.using('n', () => {}))),
  };
}

/** Instances with @nestjs-redis/lock and instances with ours, during a deploy. */
async function mixed() {
  const theirs = (await start(old.nestjsRedis.AppModule)).get(RedlockService);
  const ours = (await start(RedisLockModule.forRoot({ connection: url }))).get(RedisLockService);
  return {
    without: await crowd(1_500, [
      (work) => theirs.withLock('m', 9_000, () => work()),
      (work) => ours.using('m', () => work()),
    ]),
    with: await crowd(100, [
      (work) => theirs.withLock('m', 9_000, () => work()),
      (work) => ours.using('m', () => theirs.withLock('m', 9_000, () => work())),
    ]),
  };
}

// Runs them one after the other only if they share a key.
const both = async <T>(tell: (version: 'before' | 'after') => Promise<T>) => ({
  before: await tell('before'),
  after: await tell('after'),
});
const [murlock, nestjsRedis, defaults, redlock4, nestedCalls, down, deploy] = await Promise.all([
  both((version) => {
    const { AppModule, Orders: Service } = version === 'before' ? old.murlock : our.murlock;
    return ofMurlock({ AppModule, Service });
  }),
  both((version) => {
    const { AppModule, Stock: Service } = version === 'before' ? old.nestjsRedis : our.nestjsRedis;
    return ofNestjsRedis({ AppModule, Service });
  }),
  both((version) =>
    version === 'before' ? byDefault(Theirs, old.nestjsRedis.AppModule) : byDefault(Ours, our.nestjsRedis.AppModule),
  ),
  tellRedlock4(),
  nested(),
  withoutRedis(),
  mixed(),
]);
const seen = { murlock, nestjsRedis, defaults, redlock4, nestedCalls, down, deploy };
export type Seen = typeof seen;

process.stdout.write(JSON.stringify(seen), () => process.exit(0)); // their clients would keep it alive
