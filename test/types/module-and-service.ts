// Compiled by test/nest/types/types.slow.test.ts, never run.
import { type ExecutionContext, Get, Injectable } from '@nestjs/common';
import { expectTypeOf } from 'expect-type';
import { type Cluster, Redis } from 'ioredis';
import {
  type InjectRedisLock,
  type Lease,
  type LockEvent,
  LockHandler,
  type LockState,
  RedisLockModule,
  type RedisLockModuleOptions,
  type RedisLockOptionsFactory,
  type RedisLockService,
  type TryUsingResult,
} from 'nestjs-redis-lock';
import { fence } from 'nestjs-redis-lock/fence';

@Injectable()
export class Config implements RedisLockOptionsFactory {
  readonly url: string = 'redis://localhost';
  createRedisLockOptions = async () => ({ connection: this.url });
}

RedisLockModule.forRoot({ connection: 'redis://localhost:6379' });
RedisLockModule.forRoot({
  connection: { host: 'localhost', tls: {} },
  keyPrefix: 'shop',
  service: 'billing',
  global: false,
});
RedisLockModule.forRoot({
  connection: new Redis(),
  observers: [(event) => expectTypeOf(event).toEqualTypeOf<LockEvent>()],
});
RedisLockModule.forRootAsync({ inject: [Config], useFactory: (config: Config) => ({ connection: config.url }) });
RedisLockModule.forRootAsync({
  inject: [{ token: 'x', optional: true }],
  useFactory: async (x?: string) => ({ connection: x ?? 'memory:' }),
});
RedisLockModule.forRootAsync({ useClass: Config, service: 'billing' });
RedisLockModule.forRootAsync({ useExisting: Config, imports: [] });
// @ts-expect-error a misspelt option
RedisLockModule.forRoot({ connection: 'memory:', leasMs: 1_000 });
// @ts-expect-error a number
RedisLockModule.forRoot({ connection: 6379 });
// @ts-expect-error the factory gives a number
RedisLockModule.forRootAsync({ useFactory: () => ({ connection: 6379 }) });
RedisLockModule.forRoot({
  quorum: { connections: ['redis://a', { host: 'b' }, new Redis()], fencing: true, nodeTimeoutMs: 50 },
});
RedisLockModule.forRootAsync({ inject: [Config], useFactory: (config: Config) => JSON.parse(config.url) });
RedisLockModule.forRootAsync({
  useFactory: () =>
    process.env['NODES']
      ? {
          quorum: { connections: process.env['NODES'].split(','), nodeTimeoutMs: 50 },
          observers: [(event) => console.log(event.type)],
        }
      : { connection: 'memory:', shutdown: { drainMs: 0 } },
});
declare const ready: RedisLockModuleOptions;
RedisLockModule.forRoot(ready);
RedisLockModule.forRootAsync({ useFactory: async () => ready });
// @ts-expect-error neither a connection nor a quorum
RedisLockModule.forRoot({ leaseMs: 1_000 });
// @ts-expect-error both
RedisLockModule.forRoot({ connection: 'memory:', quorum: { connections: ['redis://a'] } });
// @ts-expect-error the variable may be missing
RedisLockModule.forRoot({ connection: process.env['REDIS_URL'] });
// @ts-expect-error nor does the factory return one
RedisLockModule.forRootAsync({ useFactory: () => ({ leaseMs: 1_000 }) });
// @ts-expect-error an unknown option of one of two
RedisLockModule.forRootAsync({ useFactory: () => (process.env['X'] ? ready : { connection: 'memory:', leasMs: 1 }) });
// @ts-expect-error an unknown option in a group
RedisLockModule.forRootAsync({ useFactory: () => ({ connection: 'memory:', shutdown: { drainMs: 0, drainMS: 1 } }) });
// @ts-expect-error an option of forRootAsync itself
RedisLockModule.forRootAsync({ useFactory: () => ({ connection: 'memory:', service: 'billing' }) });
// @ts-expect-error a misspelt option of forRootAsync
RedisLockModule.forRootAsync({ useFactry: () => ({ connection: 'memory:' }) });
export class Misspelt {
  createRedisLockOptions = () => ({ connection: 'memory:', leasMs: 1_000 });
}
// @ts-expect-error a class may not return it either
RedisLockModule.forRootAsync({ useClass: Misspelt });
// @ts-expect-error the class makes no options
RedisLockModule.forRootAsync({ useClass: Redis });

export class OrdersController {
  @Get('a')
  @LockHandler('orders')
  fixed(): number {
    return 1;
  }

  @LockHandler((context) => {
    expectTypeOf(context).toEqualTypeOf<ExecutionContext>();
    return context.getClass().name;
  })
  ofContext(): void {}

  @LockHandler({ key: (context) => [context.getType()], waitMs: 0, onBusy: () => ({ status: 'busy' }) })
  inOptions(): void {}

  // @ts-expect-error the key function is called with the context, not with the parameters
  @LockHandler((id: string) => id)
  ofParameters(_id: string): void {}

  // @ts-expect-error an option of the cron decorators
  @LockHandler({ key: 'x', overlap: 'skip' })
  unknownOption(): void {}
}

export async function service(locks: RedisLockService): Promise<void> {
  expectTypeOf(await locks.acquire('x')).toEqualTypeOf<Lease>();
  expectTypeOf(await locks.acquire(['x', 'y'] as const, { signal: AbortSignal.timeout(5) })).toEqualTypeOf<Lease>();
  expectTypeOf(await locks.tryAcquire('x')).toEqualTypeOf<Lease | null>();
  const tried = await locks.tryUsing('x', { waitMs: 200 }, async () => 42);
  expectTypeOf(tried).toEqualTypeOf<TryUsingResult<number>>();
  expectTypeOf(tried.value).toEqualTypeOf<number | undefined>();
  if (tried.ran) expectTypeOf(tried.value).toEqualTypeOf<number>();
  const { ran, value } = await locks.semaphore('x', { permits: 2 }).tryUsing(() => 'done');
  if (ran) expectTypeOf(value).toEqualTypeOf<string>();
  // @ts-expect-error: the work stands last
  await locks.tryUsing('x', () => {}, {});
  expectTypeOf(await locks.using('x', () => 1)).toEqualTypeOf<number>();
  expectTypeOf(await locks.using('x', { waitMs: 0 }, async (lease) => lease.fencingToken)).toEqualTypeOf<number>();
  expectTypeOf(locks.current()).toEqualTypeOf<Lease | undefined>();
  expectTypeOf(locks.currentOrThrow()).toEqualTypeOf<Lease>();
  expectTypeOf(locks.currentOrThrow('x')).toEqualTypeOf<Lease>();
  // @ts-expect-error: a missing name would mean any lock
  locks.currentOrThrow(undefined);
  locks.assertLocked(['x', 'y']);
  // @ts-expect-error: which resource?
  locks.assertLocked();
  expectTypeOf(await locks.inspect('x')).toEqualTypeOf<LockState>();
  // @ts-expect-error the work is missing
  await locks.using('x', { waitMs: 0 });
  // @ts-expect-error a misspelt option
  await locks.acquire('x', { waitMS: 0 });
  // @ts-expect-error a lease cannot be changed
  (await locks.acquire('x')).fencingToken = 1;
}

export async function fencing(redis: Redis | Cluster, lease: Lease): Promise<void> {
  const guard = { key: 'fence:x', token: lease.fencingToken, ttlMs: 60_000 };
  expectTypeOf(await fence.guard(redis, guard, [['SET', 'x', 1]])).toEqualTypeOf<unknown[]>();
  await fence.guard(redis, { key: 'fence:x', lease }, [['GET', Buffer.from('x')] as const]);
  // @ts-expect-error neither token nor lease
  await fence.guard(redis, { key: 'fence:x' }, []);
  // @ts-expect-error both
  await fence.guard(redis, { key: 'fence:x', lease, token: 1 }, []);
  // @ts-expect-error an argument that is no text, number or Buffer
  await fence.guard(redis, guard, [['SET', 'x', { left: 1 }]]);
}

expectTypeOf<ReturnType<typeof InjectRedisLock>>().toEqualTypeOf<PropertyDecorator & ParameterDecorator>();

export async function waitsUntilFree(locks: RedisLockService, signal: AbortSignal): Promise<void> {
  expectTypeOf(locks.waitUntilFree('a')).toEqualTypeOf<Promise<void>>();
  const options: Parameters<RedisLockService['waitUntilFree']>[1] = { waitMs: Infinity, signal };
  await locks.waitUntilFree('a', options);
  // @ts-expect-error several resources are never free at one moment
  await locks.waitUntilFree(['a', 'b']);
  // @ts-expect-error nothing is taken
  await locks.waitUntilFree('a', { leaseMs: 1_000 });
}
