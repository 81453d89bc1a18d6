// Compiled by test/nest/decorators/types.slow.test.ts, never run. `@ts-expect-error` is itself an error where the next line has none.
import { type BusyError, DistributedLock, type Lease } from 'nestjs-redis-lock';
import { expectTypeOf } from 'expect-type';

interface Order {
  id: string;
  lines: number;
}

export class KeyFunctions {
  @DistributedLock('reports')
  async fixed(): Promise<void> {}

  @DistributedLock(['a', 'b'])
  async severalFixed(_any: number, _parameters: string): Promise<void> {}

  @DistributedLock((order: Order) => `order:${order.id}`)
  async sameParameters(_order: Order): Promise<number> {
    return 1;
  }

  @DistributedLock((order: Order) => `order:${order.id}`)
  async fewerParameters(_order: Order, _quantity: number, _note?: string): Promise<void> {}

  @DistributedLock(() => 'x')
  async noParameters(_order: Order): Promise<void> {}

  @DistributedLock(({ id }: { id: string }) => id)
  async aWiderParameter(_order: Order): Promise<void> {}

  @DistributedLock((...ids: string[]) => ids)
  async restParameters(..._ids: string[]): Promise<void> {}

  @DistributedLock((id: string | undefined) => id ?? 'all')
  async anOptionalParameter(_id?: string): Promise<void> {}

  @DistributedLock({ key: (from: string, to: string) => [from, to] as const, waitMs: 0, onBusy: 'skip' })
  async inOptions(_from: string, _to: string): Promise<void> {}

  // @ts-expect-error the method's first parameter is a number
  @DistributedLock((id: string) => id)
  async wrongType(_id: number): Promise<void> {}

  // @ts-expect-error the method has no second parameter
  @DistributedLock((id: string, tenant: string) => `${tenant}:${id}`)
  async tooMany(_id: string): Promise<void> {}

  // @ts-expect-error in options too
  @DistributedLock({ key: (id: string) => id })
  async wrongTypeInOptions(_id: number): Promise<void> {}

  // @ts-expect-error the parameter may be missing, and the key would be called undefined
  @DistributedLock((id: string) => id)
  async mayBeMissing(_id?: string): Promise<void> {}

  // @ts-expect-error a key is a string
  @DistributedLock((id: number) => id)
  async numberKey(_id: number): Promise<void> {}

  // @ts-expect-error a key function is not async
  @DistributedLock(async (id: string) => id)
  async asyncKey(_id: string): Promise<void> {}
}

export class Methods {
  // @ts-expect-error a method that is not async cannot wait for a lock
  @DistributedLock('x')
  notAsync(): number {
    return 1;
  }

  // @ts-expect-error nor one that is async sometimes
  @DistributedLock('x')
  sometimesAsync(): Promise<number> | number {
    return 1;
  }

  @DistributedLock('x')
  async generic<T>(value: T): Promise<T> {
    return value;
  }

  @DistributedLock('x')
  protected async notPublic(): Promise<void> {}

  // @ts-expect-error not a method
  @DistributedLock('x')
  readonly property = 1;

  // @ts-expect-error not a method
  @DistributedLock('x')
  get accessor(): number {
    return 1;
  }
}

// A decorated method keeps its type.
expectTypeOf<Methods['generic']>().toEqualTypeOf<<T>(value: T) => Promise<T>>();

export class Options {
  @DistributedLock({
    key: 'x',
    mode: 'reentrant',
    leaseMs: 1_000,
    waitMs: Infinity,
    watchdog: false,
    maxHoldMs: 5_000,
    attemptTimeoutMs: 500,
    onLost: 'throw',
    lockService: 'billing',
    onBusy: (busy) => {
      expectTypeOf(busy).toEqualTypeOf<BusyError>();
      return busy.retryAfterMs;
    },
  })
  async all(): Promise<number> {
    return 1;
  }

  // @ts-expect-error a misspelt option
  @DistributedLock({ key: 'x', leasMs: 1_000 })
  async misspelt(): Promise<void> {}

  // @ts-expect-error no key
  @DistributedLock({ leaseMs: 1_000 })
  async noKey(): Promise<void> {}

  // @ts-expect-error an unknown mode
  @DistributedLock({ key: 'x', mode: 'shared' })
  async mode(): Promise<void> {}

  // @ts-expect-error an unknown onBusy
  @DistributedLock({ key: 'x', onBusy: 'retry' })
  async onBusy(): Promise<void> {}

  // @ts-expect-error a signal belongs to one call
  @DistributedLock({ key: 'x', signal: AbortSignal.timeout(5) })
  async signal(): Promise<void> {}
}

expectTypeOf<Lease>().toExtend<AsyncDisposable>();

/** The parameters of a class are known by their constraint only. */
export class Repository<T extends { id: string }> {
  @DistributedLock((entity: { id: string }) => entity.id)
  async save(entity: T): Promise<T> {
    return entity;
  }

  // @ts-expect-error the key function needs a number
  @DistributedLock((version: number) => `version:${version}`)
  async remove(entity: T): Promise<T> {
    return entity;
  }

  // @ts-expect-error not async
  @DistributedLock((entity: { id: string }) => entity.id)
  find(entity: T): T {
    return entity;
  }
}
