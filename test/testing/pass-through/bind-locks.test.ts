import {
  DistributedLock,
  DistributedSemaphore,
  LeaderOnly,
  LockModuleMissingError,
  ReadLock,
  RedisLockService,
  WriteLock,
} from '../../../lib/index.js';
import { SingletonCron, SingletonInterval, type SingletonRun, SingletonTimeout } from '../../../lib/schedule.js';
import { bindLocks } from '../../../lib/testing/pass-through/bind-locks.js';
import { passThroughLocks } from '../../../lib/testing/pass-through/pass-through-locks.js';
import { memoryLocks } from './memory-locks.js';

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

describe('bindLocks', () => {
  it.each(METHODS)('runs %s of an object made by new', async (method, resource) => {
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
        message: 'Shop is frozen or sealed, so no locks can be bound to it. Bind them before that.',
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
