import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  InvalidResourceError,
  LeaderOnly,
  type Lease,
  type LockEvent,
  LockModuleMissingError,
  LockReentryError,
  ReadLock,
  RedisLockService,
  type SingletonRunOptions,
  TransactionScope,
  WriteLock,
} from '../../../lib/index.js';
import { SingletonCron, SingletonInterval, type SingletonRun, SingletonTimeout } from '../../../lib/schedule.js';
import { bindLocks } from '../../../lib/testing/pass-through/bind-locks.js';
import { passThroughLocks } from '../../../lib/testing/pass-through/pass-through-locks.js';
import { memoryLocks } from './memory-locks.js';

describe('passThroughLocks', () => {
  const NIGHTLY: SingletonRunOptions = {
    job: 'nightly',
    tick: '1',
    overlap: 'skip',
    onCrash: 'retry',
    claimTtlMs: 1,
    jitterMs: 3_600_000,
    lock: {},
  };

  /** One good call of each method, and what it resolves to. `Record`, so that a new method needs a line. */
  const CALLS: Record<keyof RedisLockService, (locks: RedisLockService) => unknown> = {
    acquire: async (locks) => (await locks.acquire('a')).isHeld(),
    tryAcquire: async (locks) => (await locks.tryAcquire('a'))?.isHeld(),
    using: (locks) => locks.using(['b', 'a'], { mode: 'reentrant' }, (lease) => lease.isHeld()),
    tryUsing: async (locks) => (await locks.tryUsing('a', () => true)).ran,
    once: (locks) => locks.once('a', { resultTtlMs: 1_000 }, (lease) => lease.isHeld()),
    forget: async (locks) => (await locks.forget('a')) === undefined,
    waitUntilFree: async (locks) => (await locks.acquire('a')) && (await locks.waitUntilFree('a')) === undefined,
    current: (locks) => locks.using('a', () => locks.current('a')?.isHeld()),
    currentOrThrow: (locks) => locks.currentOrThrow('a').isHeld() && locks.currentOrThrow().isHeld(),
    assertLocked: (locks) => locks.assertLocked(['a', 'b']) === undefined,
    inspect: async (locks) => (await locks.inspect('a')).mode === null,
    list: async (locks) => (await locks.list()).length === 0,
    health: async (locks) => (await locks.health()).status === 'up',
    fleet: async (locks) => (await locks.fleet()).instances.length === 1,
    explain: async (locks) => (await locks.explain('a')).cause === 'free',
    contention: (locks) => locks.contention().groups.length === 0,
    lockOrder: (locks) => locks.lockOrder().length === 0,
    forceRelease: async (locks) => !(await locks.forceRelease('a', { fencingToken: 7 })),
    semaphore: (locks) => locks.semaphore('s', { permits: 2 }).using({ count: 2 }, (lease) => lease.isHeld()),
    observe: (locks) => locks.observe(() => {})() === undefined,
    runSingleton: (locks) => locks.runSingleton(NIGHTLY, (lease, run) => lease.isHeld() && run.tick === '1'),
    campaign: (locks) => locks.campaign('mailer').isLeader(),
    leadership: (locks) => locks.campaign('mailer') === locks.leadership('mailer'),
    onApplicationBootstrap: (locks) => locks.onApplicationBootstrap() === undefined,
    onModuleDestroy: (locks) => locks.onModuleDestroy() === undefined,
    beforeApplicationShutdown: async (locks) => (await locks.beforeApplicationShutdown()) === undefined,
  };

  const METHODS = Object.getOwnPropertyNames(RedisLockService.prototype).filter((name) => name !== 'constructor');

  it('has a call in this test for each method of RedisLockService', () => {
    expect(Object.keys(CALLS).toSorted()).toEqual(METHODS.toSorted());
  });

  it.each(Object.entries(CALLS))('%s works', async (_, call) => {
    await expect(Promise.resolve(call(passThroughLocks()))).resolves.toBe(true);
  });

  it('sets no timer in any method, so nothing keeps the process alive', async () => {
    const timers = (['setTimeout', 'setInterval', 'setImmediate'] as const).map((name) => jest.spyOn(globalThis, name));
    for (const call of Object.values(CALLS)) await call(passThroughLocks());
    const calls = timers.map(({ mock }) => mock.calls.length);
    for (const timer of timers) timer.mockRestore();
    expect(calls).toEqual([0, 0, 0]);
  });

  it('works under fake timers that no test advances', async () => {
    jest.useFakeTimers();
    try {
      for (const call of Object.values(CALLS)) expect(await call(passThroughLocks())).toBe(true);
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('lets each call pass, also where another one holds the resource', async () => {
    const locks = passThroughLocks();
    const leases: Lease[] = [];
    for (const mode of ['exclusive', 'exclusive', 'reentrant', 'read', 'write'] as const)
      leases.push(await locks.acquire('a', { mode, minHoldMs: 5_000 }));
    leases.push((await locks.tryAcquire(['a', 'b']))!, await locks.semaphore('a', { permits: 1 }).acquire());
    const tokens = leases.map(({ fencingToken }) => fencingToken);
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
    for (const lease of leases) {
      lease.assertHeld();
      await lease.extend(60_000);
    }
    await leases[4]!.downgrade();
    await locks.waitUntilFree('a');
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await locks.list()).toEqual([]);
  });

  it('runs the work of each call of once, also of two at once and after a result', async () => {
    const locks = passThroughLocks();
    let runs = 0;
    const call = () => locks.once('a', { resultTtlMs: 60_000 }, async () => ++runs);
    expect(await Promise.all([call(), call()])).toEqual([1, 2]);
    expect(await call()).toBe(3);
    expect(await locks.list()).toEqual([]);
  });

  it('ends no lease before its release, however short it is', async () => {
    const locks = passThroughLocks({ leaseMs: 50 });
    const fixed = await locks.acquire('a', { watchdog: false, leaseMs: 50 });
    const limited = await locks.acquire('b', { maxHoldMs: 50 });
    await sleep(120);
    for (const lease of [fixed, limited]) {
      lease.assertHeld();
      expect(lease.signal.aborted).toBe(false);
      await lease.extend(60_000);
      await lease.release();
      expect(lease.isHeld()).toBe(false);
    }
  });

  it('tells what is held', async () => {
    const locks = passThroughLocks();
    await using lease = await locks.acquire('order:7', { mode: 'write', label: { by: 'test' } });
    await using two = await locks.semaphore('pool', { permits: 3 }).acquire({ count: 2 });
    const { fencingToken } = lease;
    expect(await locks.inspect('order:7')).toMatchObject({
      mode: 'write',
      holders: [{ instanceId: 'unit-test', fencingToken, depth: 1, label: { by: 'test' } }],
      waiters: [],
    });
    expect(await locks.inspect('pool')).toMatchObject({ permits: { total: 3, available: 1 } });
    expect((await locks.list({ prefix: 'order:' })).map(({ resource }) => resource)).toEqual(['order:7']);
    await lease.downgrade();
    expect((await locks.inspect('order:7')).mode).toBe('read');
    expect(await locks.forceRelease('order:7', { fencingToken })).toBe(true);
    expect(await locks.list({ prefix: 'order:' })).toEqual([]);
    two.assertHeld();
  });

  it('satisfies code that must run under a lock, and shows no lock for it', async () => {
    const locks = passThroughLocks();
    locks.assertLocked(['order:7', 'order:8']);
    expect(locks.currentOrThrow('order:7').resource).toBe('order:7');
    expect(locks.currentOrThrow('order:7')).toBe(locks.currentOrThrow('order:7'));
    await locks.currentOrThrow('order:7').release();
    locks.currentOrThrow('order:7').assertHeld();
    expect(locks.current('order:7')).toBeUndefined();
    expect(await locks.list()).toEqual([]);
    await locks.using('order:9', (lease) => expect(locks.currentOrThrow('order:9')).toBe(lease));
  });

  it('leads at once, with a token, until it resigns', async () => {
    const locks = passThroughLocks();
    const elected: unknown[] = [];
    const demoted: unknown[] = [];
    const leadership = locks.campaign('mailer', {
      onElected: (term) => void elected.push(term.fencingToken),
      onDemoted: ({ message }) => void demoted.push(message),
    });
    const { signal, fencingToken } = leadership;
    expect([leadership.isLeader(), signal.aborted, fencingToken]).toEqual([true, false, expect.any(Number)]);
    expect(await leadership.run((term) => locks.current('leader:mailer') === term)).toBe(true);
    await leadership.resign();
    expect([leadership.isLeader(), signal.aborted, elected, demoted.length]).toEqual([false, true, [fencingToken], 1]);
    expect(locks.campaign('mailer').fencingToken).toBeGreaterThan(fencingToken!);
  });

  it('runs each tick, also twice, and at any time', async () => {
    const locks = passThroughLocks();
    const due = { at: Date.parse('2001-01-01T00:00:00Z'), maxClockSkewMs: 1_000 };
    for (const run of [1, 2]) expect(await locks.runSingleton({ ...NIGHTLY, due }, () => run)).toBe(run);
    expect(await locks.list()).toEqual([]);
  });

  it('refuses what the real service refuses, in the same words', async () => {
    const scope = AbortSignal.abort(new Error('over'));
    const bad: ((locks: RedisLockService) => unknown)[] = [
      (locks) => locks.acquire(''),
      (locks) => locks.acquire('a', { leaseMs: 1 }),
      (locks) => locks.tryAcquire(['a', 'a'.repeat(600)]),
      (locks) => locks.using('a', { leaseMz: 1 } as never, () => 1),
      (locks) => locks.using('a', undefined as never),
      (locks) => locks.tryUsing('a', { waitMs: -1 }, () => 1),
      (locks) => locks.acquire('a', { signal: scope }),
      (locks) => locks.waitUntilFree('', {}),
      (locks) => locks.currentOrThrow(undefined as never),
      (locks) => locks.assertLocked(''),
      (locks) => locks.inspect(''),
      (locks) => locks.list({ limit: 0 }),
      (locks) => locks.health({ timeoutMs: 0 } as never),
      (locks) => locks.forceRelease('a', {} as never),
      (locks) => locks.semaphore('a', { permits: 0 }),
      (locks) => locks.semaphore('a', { permits: 1 }).acquire({ count: 2 }),
      (locks) => locks.observe(7 as never),
      (locks) => locks.runSingleton({ ...NIGHTLY, overlap: 'maybe' as never }, () => 1),
      (locks) => locks.campaign(''),
      (locks) => locks.campaign('a', { leaseMs: 1 }),
      (locks) => locks.using('a', () => locks.using('a', () => 1)),
      (locks) => locks.using('a', () => locks.waitUntilFree('a')),
    ];
    await using real = await memoryLocks();
    const refusal = async (locks: RedisLockService, call: (typeof bad)[number]) => {
      const error = await (async () => call(locks))().then(
        () => undefined,
        (error: unknown) => error as Error,
      );
      return error && `${error.constructor.name}: ${error.message}`;
    };
    for (const call of bad) {
      const expected = await refusal(real.locks, call);
      expect(expected).toMatch(/Error: /);
      expect(await refusal(passThroughLocks(), call)).toBe(expected);
    }
  });

  it('takes the options that decide which calls are refused', async () => {
    const events: LockEvent[] = [];
    const observers = [(event: LockEvent) => void events.push(event)];
    const locks = passThroughLocks({ service: 'billing', leaseMs: 1_000, observers });
    await expect(locks.acquire('a', { maxHoldMs: 100, minHoldMs: 5_000 })).rejects.toThrow(InvalidLockOptionsError);
    await expect(locks.acquire('')).rejects.toThrow(InvalidResourceError);
    await locks.using('a', () => 1);
    expect(events.map(({ type, service }) => `${service} ${type}`)).toEqual(['billing acquired', 'billing released']);
    expect(() => passThroughLocks({ leaseMs: 1 })).toThrow(InvalidLockOptionsError);
    expect(() => passThroughLocks({ connection: 'memory:' } as never)).toThrow(/has no option "connection"/);
  });

  it('keeps a lease until the end of a transaction', async () => {
    const events: string[] = [];
    const transactions = new TransactionScope();
    const locks = passThroughLocks({ transactions, observers: [({ type }) => void events.push(type)] });
    await transactions.run(async () => {
      await locks.using('a', () => events.push('work'));
      events.push('commit');
    });
    expect(events).toEqual(['acquired', 'work', 'commit', 'released']);
  });

  it('ends a reentry that would wait for itself', async () => {
    const locks = passThroughLocks();
    const nested = locks.using('a', () => locks.using('a', () => 1));
    await expect(nested).rejects.toThrow(LockReentryError);
    expect(await locks.using('a', { mode: 'reentrant' }, () => locks.using('a', { mode: 'reentrant' }, () => 1))).toBe(
      1,
    );
  });
});

describe('bindLocks', () => {
  class Shop {
    constructor(private readonly locks?: RedisLockService) {}

    @DistributedLock((id: string) => `order:${id}`)
    async pay(_id: string) {
      return this.held();
    }

    @ReadLock('prices')
    async read() {
      return this.held();
    }

    @WriteLock('prices')
    async write() {
      return this.held();
    }

    @DistributedSemaphore({ key: 'pool', permits: 2 })
    async query() {
      return this.held();
    }

    @LeaderOnly('mailer')
    async mail(): Promise<string | undefined> {
      return this.held();
    }

    @SingletonCron('0 3 * * *', { name: 'nightly', jitterMs: 60_000 })
    async nightly({ lease, manual }: SingletonRun): Promise<string | undefined> {
      return manual ? 'manual' : lease.resource;
    }

    @SingletonInterval('poll', 1_000)
    async poll(): Promise<string | undefined> {
      return this.held();
    }

    @SingletonTimeout('warm', 0)
    async warm(): Promise<string | undefined> {
      return this.held();
    }

    private held() {
      return this.locks?.current()?.resources.join();
    }
  }

  class BigShop extends Shop {
    @DistributedLock('refund')
    async refund() {
      return 'refunded';
    }
  }

  class Ledger {
    @DistributedLock('book')
    async book() {
      return 'booked';
    }

    @DistributedLock({ key: 'bill', service: 'billing' })
    async bill() {
      return 'billed';
    }
  }

  class Plain {
    add() {
      return 1;
    }
  }

  const METHODS: [keyof Shop, string][] = [
    ['pay', 'order:7'],
    ['read', 'prices'],
    ['write', 'prices'],
    ['query', 'pool'],
    ['mail', 'leader:mailer'],
    ['nightly', 'cron:nightly'],
    ['poll', 'cron:poll'],
    ['warm', 'cron:warm'],
  ];

  const call = (shop: Shop, method: keyof Shop) => (shop[method] as (...args: unknown[]) => Promise<unknown>)('7');

  it.each(METHODS)('runs %s of an object created with new', async (method, resource) => {
    const locks = passThroughLocks();
    expect(await call(bindLocks(new Shop(locks), locks), method)).toBe(resource);
  });

  it.each(METHODS)('leaves %s refused on an object that is not bound', async (method) => {
    bindLocks(new Shop(), passThroughLocks());
    const refused = call(new Shop(), method);
    await expect(refused).rejects.toThrow(LockModuleMissingError);
    await expect(refused).rejects.toThrow('call bindLocks(object, passThroughLocks()) of nestjs-redis-lock/testing');
  });

  it('binds inherited methods, and shows nothing of it on the object', async () => {
    const shop = new BigShop();
    expect(bindLocks(shop, passThroughLocks())).toBe(shop);
    expect(await shop.refund()).toBe('refunded');
    expect(shop).toEqual(new BigShop());
  });

  it('binds to a real lock service too, and a later call binds to another', async () => {
    await using real = await memoryLocks();
    const passing = passThroughLocks();
    const shop = bindLocks(new Shop(real.locks), real.locks);
    await using _held = await passing.acquire('order:7');
    expect(await shop.pay('7')).toBe('order:7');
    bindLocks(shop, passing);
    await expect(shop.pay('7')).resolves.toBeUndefined(); // held in the other service
  });

  it('binds named lock services', async () => {
    const ran: string[] = [];
    const named = (name: string) =>
      passThroughLocks({
        service: name,
        observers: [(event) => void (event.type === 'acquired' && ran.push(`${event.service} ${event.resource}`))],
      });
    const ledger = bindLocks(new Ledger(), { default: named('default'), billing: named('billing') });
    expect([await ledger.book(), await ledger.bill()]).toEqual(['booked', 'billed']);
    expect(ran).toEqual(['default book', 'billing bill']);
  });

  const locks = passThroughLocks();
  const REFUSED: [string, () => unknown, string | RegExp][] = [
    [
      'an object without decorated methods',
      () => bindLocks(new Plain(), locks),
      /^Plain has no method with a decorator/,
    ],
    ['a class', () => bindLocks(Shop, locks), 'not a class: pass new Shop(...)'],
    ['nothing', () => bindLocks(undefined as never, locks), 'needs an object with decorated methods, not undefined'],
    [
      'no lock service',
      () => bindLocks(new Shop(), undefined as never),
      /^locks must be a lock service, not undefined/,
    ],
    [
      'half a mock',
      () => bindLocks(new Shop(), { default: { using() {} } as never }),
      'and has no semaphore, campaign',
    ],
    [
      'a mock',
      () => bindLocks(new Shop(), { using() {}, acquire() {} } as never),
      /^locks must be a lock service, and has no semaphore, campaign, runSingleton\. Pass passThroughLocks\(\)/,
    ],
    ['half a mock, alone', () => bindLocks(new Shop(), new Plain() as never), 'and has no using, semaphore'],
    [
      'a missing service',
      () => bindLocks(new Ledger(), locks),
      'Call bindLocks(object, { default: locks, billing: locks })',
    ],
    [
      'a service too many',
      () => bindLocks(new Shop(), { default: locks, billing: locks }),
      'uses the lock service "billing"',
    ],
    [
      'a misspelt service',
      () => bindLocks(new Ledger(), { default: locks, billing: locks, biling: locks }),
      'Did you mean "billing"?',
    ],
  ];

  it.each(REFUSED)('refuses %s', (_, bind, message) => {
    expect(bind).toThrow(message);
    expect(bind).toThrow(expect.objectContaining({ name: 'InvalidLockOptionsError' }));
  });

  it.each([
    ['frozen', Object.freeze],
    ['sealed', Object.seal],
  ])('refuses an object that is %s', (_, close) => {
    expect(() => bindLocks(close(new Shop()), locks)).toThrow(
      expect.objectContaining({
        name: 'InvalidLockOptionsError',
        message:
          'Shop is frozen or sealed, so no locks can be bound to it. Call bindLocks before you freeze or seal the object.',
      }),
    );
    const bound = close(bindLocks(new Shop(), locks));
    expect(() => bindLocks(bound, locks)).toThrow('Shop is frozen or sealed');
  });

  it('binds nothing where it refuses', async () => {
    const ledger = new Ledger();
    expect(() => bindLocks(ledger, locks)).toThrow('billing');
    await expect(ledger.book()).rejects.toThrow(LockModuleMissingError);
  });
});
