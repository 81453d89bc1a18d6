// Compiled by test/nest/types/types.slow.test.ts, never run. `@ts-expect-error` is itself an error where the next line has none.
import { applyDecorators } from '@nestjs/common';
import {
  type LockBusyError,
  DistributedLock,
  DistributedSemaphore,
  type Holder,
  type LockDecoratorOptions,
  type Lease,
  Once,
  type ResourceNames,
} from 'nestjs-redis-lock';
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

export class OptionsOfTheCall {
  @DistributedLock({
    key: (chat: string) => chat,
    label: (chat) => ({ group: 'Chats.answer', chat }),
    onWait: ({ ahead, holder }, chat) => {
      expectTypeOf(ahead).toEqualTypeOf<number>();
      expectTypeOf(holder).toEqualTypeOf<Holder | undefined>();
      expectTypeOf(chat).toEqualTypeOf<string>();
    },
  })
  async answer(_chat: string, _question: string): Promise<void> {}

  @DistributedLock({ key: 'chats', label: (chat: string) => ({ chat }), onWait: () => {} })
  async fixedKey(_chat: string): Promise<void> {}

  @DistributedSemaphore({
    key: 'models',
    permits: 3,
    label: (chat: string) => ({ chat }),
    onWait: (_place, _chat) => {},
  })
  async permits(_chat: string): Promise<void> {}

  @Once({ key: (id: string) => id, resultTtlMs: 1_000, label: (id) => ({ id }) })
  async once(_id: string): Promise<void> {}

  // @ts-expect-error the parameters of the label function are others
  @DistributedLock({ key: 'chats', label: (chat: number) => ({ chat }) })
  async otherParameters(_chat: string): Promise<void> {}

  // @ts-expect-error a label is not computed later
  @DistributedLock({ key: 'chats', label: async () => ({ chat: 1 }) })
  async lateLabel(): Promise<void> {}
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
    service: 'billing',
    onBusy: (busy) => {
      expectTypeOf(busy).toEqualTypeOf<LockBusyError>();
      return busy.retryAfterMs;
    },
  })
  async all(): Promise<number | undefined> {
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

  @DistributedLock({ key: (id: string) => id, onBusy: 'cancelHolder', cancellable: true })
  async newest(_id: string): Promise<number> {
    return 1;
  }

  // @ts-expect-error not of a decorator: it waits by default
  @DistributedLock({ key: 'x', onBusy: 'wait' })
  async waits(): Promise<void> {}

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

/** The value returned without running the method has to be in its return type. */
export class BusyResults<T> {
  @DistributedLock({ key: 'x', onBusy: 'throw' })
  async throws(): Promise<number> {
    return 1;
  }

  @DistributedLock({ key: 'x', onBusy: 'skip' })
  async optional(): Promise<number | undefined> {
    return 1;
  }

  @DistributedLock({ key: 'x', onBusy: 'skip' })
  async ofTheClass(value: T): Promise<T | undefined> {
    return value;
  }

  @DistributedLock({ key: 'x', onBusy: 'skip' })
  async unknown(): Promise<unknown> {
    return 1;
  }

  @DistributedLock({ key: 'x', onBusy: 'skip' })
  async any(): Promise<ReturnType<typeof JSON.parse>> {
    return 1;
  }

  @DistributedLock({ key: 'x', onBusy: () => {} })
  async nothing(): Promise<void> {}

  @DistributedLock({ key: 'x', onBusy: () => 'busy' })
  async literal(): Promise<'busy' | 'done'> {
    return 'done';
  }

  @DistributedLock({ key: (id: string) => id, onBusy: async (busy) => ({ status: 'busy', after: busy.retryAfterMs }) })
  async literalInAPromise(_id: string): Promise<{ status: 'busy' | 'done'; after?: number | undefined }> {
    return { status: 'done' };
  }

  @DistributedLock({ key: 'x', onBusy: () => [] })
  async list(): Promise<string[]> {
    return [];
  }

  @DistributedLock({ key: 'x', onBusy: () => ({ orders: [{ id: '1', lines: 2 }], at: new Date() }) })
  async nestedList(): Promise<{ orders: Order[]; at: Date }> {
    return { orders: [], at: new Date() };
  }

  @DistributedLock({
    key: 'x',
    onBusy: (busy) => {
      throw new Error('busy', { cause: busy });
    },
  })
  async anotherError(): Promise<number> {
    return 1;
  }

  @DistributedLock({ key: 'x', onBusy: ({ cause }) => cause })
  async unknownFromAFunction(): Promise<unknown> {
    return 1;
  }

  @DistributedLock({
    key: (order: Order) => order.id,
    onBusy: (_busy, order) => {
      expectTypeOf(order).toEqualTypeOf<Order>();
      return order.lines;
    },
  })
  async parametersOfTheKey(_order: Order, _note: string): Promise<number> {
    return 1;
  }

  @DistributedLock({ key: 'x', onBusy: (_busy, id: string, at?: Date) => [id, at] as const })
  async parametersOfItsOwn(_id: string, _at?: Date): Promise<readonly [string, Date?]> {
    return [''];
  }

  @DistributedLock({ key: (id: string) => id, onBusy: (_busy, _id: string, at: Date) => at })
  async moreThanTheKey(_id: string, _at: Date): Promise<Date> {
    return new Date();
  }

  // @ts-expect-error the method has a Date
  @DistributedLock({ key: 'x', onBusy: (_busy, id: string) => id })
  async anotherParameter(_at: Date): Promise<string> {
    return '';
  }

  // @ts-expect-error the method has one parameter
  @DistributedLock({ key: (id: string) => id, onBusy: (_busy, id, at: Date) => `${id} ${at.toISOString()}` })
  async tooManyParameters(_id: string): Promise<string> {
    return '';
  }

  // @ts-expect-error the parameter may be missing
  @DistributedLock({ key: 'x', onBusy: (_busy, id: string) => id })
  async mayBeMissing(_id?: string): Promise<string> {
    return '';
  }

  @DistributedLock({ key: 'x', onBusy: (_busy, entity: unknown) => entity })
  async parametersOfTheClass(entity: T): Promise<unknown> {
    return entity;
  }

  // @ts-expect-error a busy call returns undefined
  @DistributedLock({ key: 'x', onBusy: 'skip' })
  async skips(): Promise<number> {
    return 1;
  }

  // @ts-expect-error null is not undefined
  @DistributedLock({ key: 'x', onBusy: 'skip' })
  async nullable(): Promise<number | null> {
    return 1;
  }

  // @ts-expect-error the class does not say that T may be undefined
  @DistributedLock({ key: 'x', onBusy: 'skip' })
  async skipsOfTheClass(value: T): Promise<T> {
    return value;
  }

  // @ts-expect-error also beside a key function
  @DistributedLock({ key: (id: string) => id, waitMs: 0, onBusy: 'skip' })
  async skipsWithKey(_id: string): Promise<number> {
    return 1;
  }

  // @ts-expect-error one of both is undefined
  @DistributedLock({ key: 'x', onBusy: Math.random() < 0.5 ? 'skip' : 'throw' })
  async maySkip(): Promise<number> {
    return 1;
  }

  // @ts-expect-error another type
  @DistributedLock({ key: 'x', onBusy: () => 42 })
  async anotherType(): Promise<string> {
    return '';
  }

  // @ts-expect-error a function without a result
  @DistributedLock({ key: 'x', onBusy: () => {} })
  async noResult(): Promise<string> {
    return '';
  }

  // @ts-expect-error another type, in a promise
  @DistributedLock({ key: 'x', onBusy: async () => 42 })
  async anotherTypeInAPromise(): Promise<string> {
    return '';
  }
}

const patient = { waitMs: 60_000 } satisfies Partial<LockDecoratorOptions>;
const skipping: LockDecoratorOptions<[], 'skip'> = { key: 'x', onBusy: 'skip' };
declare const names: ResourceNames;

export class SharedOptions {
  @DistributedLock({ ...patient, key: (id: string) => id })
  async spread(_id: string): Promise<number> {
    return 1;
  }

  @DistributedLock(skipping)
  async skips(): Promise<number | undefined> {
    return 1;
  }

  @DistributedLock(names)
  async oneOrMore(): Promise<number> {
    return 1;
  }

  // @ts-expect-error the type of the options says that a call may be skipped
  @DistributedLock(skipping)
  async dishonest(): Promise<number> {
    return 1;
  }
}

/** Several decorators may be one. */
export const Exclusive = applyDecorators(DistributedLock('x'));
