// Compiled by test/nest/types/types.slow.test.ts, never run. `@ts-expect-error` is itself an error where the next line has none.
import {
  type LockBusyError,
  DistributedSemaphore,
  LockHandler,
  ReadLock,
  type RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { expectTypeOf } from 'expect-type';

interface Order {
  id: string;
  lines: number;
}

export class ReadersAndWriters {
  @ReadLock('prices')
  async fixed(): Promise<void> {}

  @WriteLock(['a', 'b'])
  async severalFixed(_any: number): Promise<void> {}

  @ReadLock((order: Order) => `order:${order.id}`)
  async sameParameters(_order: Order, _note?: string): Promise<number> {
    return 1;
  }

  @WriteLock({ key: (from: string, to: string) => [from, to] as const, waitMs: 0, onBusy: 'skip' })
  async inOptions(_from: string, _to: string): Promise<void> {}

  @ReadLock({
    key: 'x',
    leaseMs: 1_000,
    strictOrder: true,
    onLost: 'throw',
    service: 'billing',
    onBusy: (busy) => {
      expectTypeOf(busy).toEqualTypeOf<LockBusyError>();
      throw busy;
    },
  })
  async all<T>(value: T): Promise<T> {
    return value;
  }

  // @ts-expect-error the method's first parameter is a number
  @ReadLock((id: string) => id)
  async wrongType(_id: number): Promise<void> {}

  // @ts-expect-error in options too
  @WriteLock({ key: (id: string) => id })
  async wrongTypeInOptions(_id: number): Promise<void> {}

  // @ts-expect-error the method has no second parameter
  @WriteLock((id: string, tenant: string) => `${tenant}:${id}`)
  async tooMany(_id: string): Promise<void> {}

  // @ts-expect-error the parameter may be missing, and the key would be called undefined
  @ReadLock((id: string) => id)
  async mayBeMissing(_id?: string): Promise<void> {}

  // @ts-expect-error a method that is not async cannot wait for a lock
  @ReadLock('x')
  notAsync(): number {
    return 1;
  }

  // @ts-expect-error the decorator is the mode
  @ReadLock({ key: 'x', mode: 'write' })
  async mode(): Promise<void> {}

  // @ts-expect-error a misspelt option
  @WriteLock({ key: 'x', leasMs: 1_000 })
  async misspelt(): Promise<void> {}

  // @ts-expect-error no key
  @WriteLock({ leaseMs: 1_000 })
  async noKey(): Promise<void> {}

  // @ts-expect-error a busy call returns undefined
  @ReadLock({ key: 'x', onBusy: 'skip' })
  async skips(): Promise<number> {
    return 1;
  }

  // @ts-expect-error several holders
  @ReadLock({ key: 'x', onBusy: 'cancelHolder' })
  async newestReader(): Promise<void> {}

  // @ts-expect-error not of this mode
  @WriteLock({ key: 'x', cancellable: true })
  async cancellableWriter(): Promise<void> {}

  // @ts-expect-error another type
  @WriteLock({ key: 'x', onBusy: () => 42 })
  async anotherType(): Promise<string> {
    return '';
  }
}

// A decorated method keeps its type.
expectTypeOf<ReadersAndWriters['all']>().toEqualTypeOf<<T>(value: T) => Promise<T>>();

export class Permits {
  @DistributedSemaphore({ key: 'exports', permits: 3 })
  async fixed(_any: number): Promise<void> {}

  @DistributedSemaphore({ key: (order: Order) => `order:${order.id}`, permits: 3, count: 2, waitMs: 0 })
  async sameParameters(_order: Order, _note?: string): Promise<number> {
    return 1;
  }

  // @ts-expect-error the method's first parameter is a number
  @DistributedSemaphore({ key: (id: string) => id, permits: 3 })
  async wrongType(_id: number): Promise<void> {}

  // @ts-expect-error the parameter may be missing
  @DistributedSemaphore({ key: (id: string) => id, permits: 3 })
  async mayBeMissing(_id?: string): Promise<void> {}

  // @ts-expect-error one name only
  @DistributedSemaphore({ key: ['a', 'b'], permits: 3 })
  async severalNames(): Promise<void> {}

  // @ts-expect-error a function too
  @DistributedSemaphore({ key: (id: string) => [id], permits: 3 })
  async severalNamesOfAFunction(_id: string): Promise<void> {}

  // @ts-expect-error how many permits are there?
  @DistributedSemaphore({ key: 'exports' })
  async noPermits(): Promise<void> {}

  // @ts-expect-error all callers must state the same number
  @DistributedSemaphore({ key: 'exports', permits: (tenant: string) => tenant.length })
  async permitsOfAFunction(_tenant: string): Promise<void> {}

  // @ts-expect-error a semaphore has no mode
  @DistributedSemaphore({ key: 'exports', permits: 3, mode: 'read' })
  async mode(): Promise<void> {}

  // @ts-expect-error a name alone has no number of permits
  @DistributedSemaphore('exports')
  async onlyAName(): Promise<void> {}

  @DistributedSemaphore({ key: 'exports', permits: 3, onBusy: 'skip' })
  async mayBeSkipped(): Promise<number | undefined> {
    return 1;
  }

  // @ts-expect-error a busy call returns undefined
  @DistributedSemaphore({ key: 'exports', permits: 3, onBusy: 'skip' })
  async skips(): Promise<number> {
    return 1;
  }

  // @ts-expect-error another type
  @DistributedSemaphore({ key: (id: string) => id, permits: 3, onBusy: () => 42 })
  async anotherType(_id: string): Promise<string> {
    return '';
  }

  // @ts-expect-error several holders
  @DistributedSemaphore({ key: 'exports', permits: 3, onBusy: 'cancelHolder' })
  async newestOfSeveral(): Promise<void> {}

  // @ts-expect-error several holders
  @DistributedSemaphore({ key: 'exports', permits: 3, cancellable: true })
  async cancellable(): Promise<void> {}

  // @ts-expect-error not async
  @DistributedSemaphore({ key: 'exports', permits: 3 })
  notAsync(): number {
    return 1;
  }
}

export class Handlers {
  @LockHandler({ key: (context) => context.getHandler().name, mode: 'read' })
  read(): number {
    return 1;
  }

  @LockHandler({ key: (context) => context.getHandler().name, permits: 3, count: 2, onBusy: 'skip' })
  some(): number {
    return 1;
  }

  @LockHandler({ key: 'x', onBusy: 'cancelHolder', cancellable: true })
  newest(): void {}

  // @ts-expect-error permits of several holders
  @LockHandler({ key: 'x', permits: 3, onBusy: 'cancelHolder' })
  newestOfSeveral(): void {}

  // @ts-expect-error permits or a mode
  @LockHandler({ key: 'x', permits: 3, mode: 'read' })
  both(): void {}

  // @ts-expect-error permits of one semaphore
  @LockHandler({ key: ['a', 'b'], permits: 3 })
  severalNames(): void {}
}

export async function ofTheService(locks: RedisLockService): Promise<void> {
  const semaphore = locks.semaphore('exports', { permits: 3 });
  const lease = await semaphore.acquire({ count: 2 });
  expectTypeOf(lease.permits).toEqualTypeOf<number | undefined>();
  expectTypeOf(await lease.releasePermits(1)).toEqualTypeOf<void>();
  // @ts-expect-error how many?
  await lease.releasePermits();
  expectTypeOf(await semaphore.using(() => 1)).toEqualTypeOf<number>();
  // @ts-expect-error several holders
  await semaphore.acquire({ cancellable: true });
  // @ts-expect-error an unknown onBusy
  await locks.acquire('exports', { onBusy: 'skip' });
  // @ts-expect-error the modes are of locks
  await semaphore.acquire({ mode: 'read' });
  // @ts-expect-error a semaphore is no mode to acquire in
  await locks.acquire('exports', { mode: 'semaphore' });
}
