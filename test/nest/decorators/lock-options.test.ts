import { Injectable } from '@nestjs/common';
import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  LeaderOnly,
  LockHandler,
  ReadLock,
  RedisLockService,
  WriteLock,
} from 'nestjs-redis-lock';
import { SingletonInterval } from 'nestjs-redis-lock/schedule';
import { rejection } from '../../support/expect/eventually.js';
import { inMemory, useApps } from '../nest-apps.js';

const bug = new RangeError('no such tenant');
let runs = 0;
/** The result of the key function. */
let yielded: unknown;

@Injectable()
class Tenants {
  @DistributedLock(() => yielded as string)
  async clean(): Promise<void> {
    runs++;
  }

  @DistributedLock((_tenant: { id: string }) => {
    throw bug;
  })
  async drop(_tenant: { id: string }): Promise<void> {
    runs++;
  }
}

describe('a key function', () => {
  const start = useApps();
  let tenants: Tenants;
  let acquired: string[];

  beforeEach(async () => {
    runs = 0;
    const { app } = await start({ imports: [inMemory()], providers: [Tenants] });
    tenants = app.get(Tenants);
    acquired = [];
    app.get(RedisLockService).observe((event) => {
      if (event.type === 'acquired') acquired.push(event.resource);
    });
  });
  // A broken key must never lead to one lock shared by all calls.
  const expectNothingHappened = (): void => expect({ runs, acquired }).toEqual({ runs: 0, acquired: [] });

  const bad: [string, unknown, RegExp][] = [
    ['undefined', undefined, /undefined is not a string/],
    ['a promise, of an async function', Promise.resolve('x'), /an object \(Promise\) is not a string/],
    ['an empty string', '', /the name is empty/],
    ['an empty array', [], /the array is empty/],
    ['513 bytes', 'ä'.repeat(256) + 'x', /the name has 513 bytes, more than 512/],
  ];
  it.each(bad)('that yields %s is an InvalidLockOptionsError, and the method does not run', async (_, value, why) => {
    yielded = value;
    const error = await rejection(tenants.clean());
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toMatch(why);
    expect(error.message).toContain('Tenants.clean');
    expectNothingHappened();
  });

  it('that throws is an InvalidLockOptionsError with what it threw as cause', async () => {
    const error = await rejection(tenants.drop({ id: 'x' }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toBe('The key function of Tenants.drop threw: no such tenant');
    expect(error.cause).toBe(bug);
    expectNothingHappened();
  });
});

/** Decorates a method of a class as the compiler does, with options that it would not let pass. */
function decorating(options: unknown, decorator: (given: never) => unknown = DistributedLock): () => void {
  class Reports {
    async nightly(): Promise<void> {}
  }
  const descriptor = Object.getOwnPropertyDescriptor(Reports.prototype, 'nightly')!;
  return () => (decorator(options as never) as MethodDecorator)(Reports.prototype, 'nightly', descriptor);
}

describe('two decorators with one key on one method', () => {
  const define = (upper: unknown, lower: unknown) => () => {
    class Shop {
      @DistributedLock(upper as string)
      @DistributedLock(lower as string)
      async pay(): Promise<void> {}
    }
    return Shop;
  };

  it.each([
    ['the same key', 'stock', 'stock'],
    ['a key of several', ['orders', 'stock'], { key: ['stock', 'till'] }],
  ])('are refused when the class is defined: %s', (_, upper, lower) => {
    expect(define(upper, lower)).toThrow(InvalidLockOptionsError);
    expect(define(upper, lower)).toThrow(
      'Shop.pay is locked by "stock" twice, so each call would wait for itself. Remove one of the two decorators.',
    );
  });

  it.each([
    ['other keys', 'stock', 'till'],
    ['a key function, which may return another', 'stock', () => 'stock'],
    ['reentrant locks', { key: 'stock', mode: 'reentrant' }, { key: 'stock', mode: 'reentrant' }],
    ['other lock services', 'stock', { key: 'stock', service: 'billing' }],
  ])('are two locks with %s', (_, upper, lower) => {
    expect(define(upper, lower)).not.toThrow();
  });
});

describe('the options of a decorator are checked when the class is defined', () => {
  const bad: [string, unknown, string][] = [
    [
      'a misspelt option',
      { key: 'x', leasMs: 100 },
      'The lock of Reports.nightly has no option "leasMs". Did you mean leaseMs?',
    ],
    [
      'an option of the other decorators',
      { key: 'x', overlap: 'skip' },
      'The lock of Reports.nightly has no option "overlap". Known options: key, onBusy',
    ],
    [
      'a signal, which belongs to one call',
      { key: 'x', signal: new AbortController().signal },
      'has no option "signal"',
    ],
    [
      'a lease too short',
      { key: 'x', leaseMs: 49 },
      'leaseMs must be an integer from 50 to 86400000 (milliseconds), not 49.',
    ],
    ['a fraction', { key: 'x', leaseMs: 100.5 }, 'not 100.5.'],
    ['a minimum', { key: 'x', minHoldMs: 100, maxHoldMs: 50 }, 'minHoldMs must be at most maxHoldMs (50), not 100'],
    [
      'a number in a string',
      { key: 'x', waitMs: '5' },
      'waitMs must be an integer of 0 or more (milliseconds) or Infinity, not "5".',
    ],
    ['an unknown mode', { key: 'x', mode: 'shared' }, "mode must be one of 'exclusive', 'reentrant'"],
    ['an unknown onBusy', { key: 'x', onBusy: 'wait' }, "onBusy must be one of 'throw', 'skip'"],
    ['an unknown onLost', { key: 'x', onLost: 'abort' }, `onLost must be one of 'throw', 'ignore', not "abort".`],
    ['an empty lock service', { key: 'x', service: '' }, 'service must be the name of a registration, not "".'],
    ['a retry that is no strategy', { key: 'x', retry: 5 }, 'retry must be a strategy with a next() method'],
    ['a missing key', {}, 'key is missing in the lock of Reports.nightly: it names the resource to lock.'],
    ['no options at all', undefined, 'The lock of Reports.nightly must be an object, not undefined.'],
    ['no keys', [], 'the array is empty'],
  ];
  it.each(bad)('%s', (_, options, message) => {
    expect(decorating(options)).toThrow(InvalidLockOptionsError);
    expect(decorating(options)).toThrow(message);
    expect(decorating(options, LockHandler)).toThrow(message);
  });

  it.each([
    ['@ReadLock', ReadLock],
    ['@WriteLock', WriteLock],
  ])('%s: the mode is what it stands for, all else is as above', (_, decorator) => {
    for (const [, options, message] of bad.filter(([what]) => what !== 'an unknown mode')) {
      expect(decorating(options, decorator)).toThrow(message);
    }
    const why = 'The lock of Reports.nightly has no option "mode". Known options: key, onBusy';
    expect(decorating({ key: 'x', mode: 'write' }, decorator)).toThrow(why);
    expect(decorating({ key: ['a', 'b'], leaseMs: 50, onBusy: 'skip' }, decorator)).not.toThrow();
  });

  const badSemaphores: [string, unknown, string][] = [
    [
      'no permits',
      { key: 'x', permits: undefined },
      'pass the total number of permits of the semaphore of Reports.nightly',
    ],
    ['too many', { key: 'x', permits: 1_000_001 }, 'permits must be an integer from 1 to 1000000 (permits)'],
    ['a function, which is for the key alone', { key: 'x', permits: () => 3 }, 'not a function.'],
    [
      'half a permit',
      { key: 'x', permits: 3, count: 0.5 },
      'count must be an integer from 1 to 1000000 (permits), not 0.5.',
    ],
    ['more than there are', { key: 'x', permits: 3, count: 4 }, 'count is 4, but there are 3 permits'],
    ['a mode', { key: 'x', permits: 3, mode: 'read' }, 'has no option "mode"'],
    [
      'several names',
      { key: ['a', 'b'], permits: 3 },
      'an array of 2 is not a string. A resource is a non-empty string',
    ],
  ];
  it.each(badSemaphores)('a semaphore with %s', (_, options, message) => {
    for (const decorator of [DistributedSemaphore, LockHandler]) {
      expect(decorating(options, decorator)).toThrow(InvalidLockOptionsError);
      expect(decorating(options, decorator)).toThrow(message);
    }
  });

  it('a semaphore that is only a name, and a lock that has permits', () => {
    expect(decorating('x', DistributedSemaphore)).toThrow(
      'The semaphore of Reports.nightly must be an object, not a string.',
    );
    expect(decorating(undefined, DistributedSemaphore)).toThrow('must be an object, not undefined.');
    for (const decorator of [DistributedLock, ReadLock, WriteLock]) {
      expect(decorating({ key: 'x', permits: 3 }, decorator)).toThrow('has no option "permits"');
    }
  });
});

describe('what cannot be locked is refused when the class is defined', () => {
  const lock = DistributedLock('x') as unknown as MethodDecorator;

  it('a static method, because Nest injects the lock service into instances', () => {
    class Reports {
      static async nightly(): Promise<void> {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Reports, 'nightly')!;
    expect(() => lock(Reports, 'nightly', descriptor)).toThrow(InvalidLockOptionsError);
    expect(() => lock(Reports, 'nightly', descriptor)).toThrow('A static method of Reports cannot be locked');
  });

  it.each<[string, unknown]>([
    ['@DistributedLock', lock],
    ['@DistributedSemaphore', DistributedSemaphore({ key: 'x', permits: 3 })],
    ['@ReadLock', ReadLock('x')],
    ['@LockHandler', LockHandler('x')],
    ['@LeaderOnly', LeaderOnly('x')],
    ['@SingletonInterval', SingletonInterval(1_000)],
  ])('a method with an ECMAScript decorator: %s', (_name, decorator) => {
    const decorate = decorator as (value: unknown, context: object) => void;
    async function pay(): Promise<void> {}
    const message = /^The method pay has an ECMAScript decorator.* "experimentalDecorators": true/;
    expect(() => decorate(pay, { kind: 'method', name: 'pay' })).toThrow(message);
    expect(() => decorate(undefined, { kind: 'field', name: 'pay' })).toThrow(
      'The field pay has an ECMAScript decorator',
    );
    expect(() => decorate(class Shop {}, { kind: 'class', name: undefined })).toThrow(InvalidLockOptionsError);
  });

  it('a getter', () => {
    class Reports {
      get nightly(): number {
        return 1;
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Reports.prototype, 'nightly')!;
    expect(() => lock(Reports.prototype, 'nightly', descriptor)).toThrow(
      'Reports.nightly is not a method, but undefined',
    );
    // A compiler passes no descriptor for a property that is an arrow function.
    expect(() => lock(Reports.prototype, 'nightly', undefined!)).toThrow(
      'Reports.nightly is a property, and this decorator only works on methods',
    );
  });

  it.each<[string, MethodDecorator]>([
    ['@DistributedLock', lock],
    ['@LeaderOnly', LeaderOnly('x') as unknown as MethodDecorator],
    ['@SingletonInterval', SingletonInterval(1_000) as unknown as MethodDecorator],
  ])('a generator, whose code would run after the lock: %s', (_name, decorator) => {
    class Reports {
      async *nightly(): AsyncGenerator<number> {
        yield 1;
      }

      *daily(): Generator<number> {
        yield 1;
      }
    }
    for (const name of ['nightly', 'daily'] as const) {
      const descriptor = Object.getOwnPropertyDescriptor(Reports.prototype, name)!;
      expect(() => void decorator(Reports.prototype, name, descriptor)).toThrow(
        `Reports.${name} is a generator, whose code runs as it is consumed`,
      );
    }
  });
});
