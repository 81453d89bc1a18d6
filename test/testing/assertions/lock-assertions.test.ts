import { AssertionError } from 'node:assert';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { Test } from '@nestjs/testing';
import { RedisLockService } from '../../../lib/index.js';
import { RedisLockTestingModule } from '../../../lib/testing/redis-lock-testing.module.js';
import { testLocks } from '../../../lib/testing/test-locks-of.js';
import type { TestLocks } from '../../../lib/testing/test-locks.js';

class Stock {
  left = 1;

  async read() {
    await sleep(1);
    return this.left;
  }

  async write(left: number) {
    await sleep(1);
    this.left = left;
  }
}

/** Protected by a lock, and synchronous. */
const ledger = {
  booked: 0,
  book(amount: number) {
    if (amount > 0) throw new Error(`${amount} is too much`);
    return ++this.booked;
  },
};

/** Takes turns of the event loop rather than time: on a busy machine, a millisecond may pass before the first turn. */
async function turns(): Promise<void> {
  for (let count = 0; count < 20; count++) await turn();
}

let service: RedisLockService;
let locks: TestLocks;
let close: () => Promise<void>;

beforeEach(async () => {
  const testing = await Test.createTestingModule({ imports: [RedisLockTestingModule.forRoot()] }).compile();
  service = testing.get(RedisLockService);
  locks = testLocks(testing);
  close = () => testing.close();
});

afterEach(() => close());

async function failure(assertion: Promise<unknown>): Promise<string> {
  const error = await assertion.then(
    () => new Error('the assertion passed'),
    (error: unknown) => error as Error,
  );
  expect(error).toBeInstanceOf(AssertionError);
  return error.message;
}

describe('expectHeldDuring', () => {
  const held = (work: () => unknown, options?: Parameters<TestLocks['expectHeldDuring']>[2]) =>
    locks.expectHeldDuring('order:7', work, options);

  it('returns what the work returns under the lock', async () => {
    expect(await held(() => service.using('order:7', () => sleep(5, 'paid')))).toBe('paid');
    expect(await held(() => service.using('order:7', { backgroundRelease: true }, () => 'paid'))).toBe('paid');
    expect(await held(() => service.using('order:7', { mode: 'read' }, () => 'read'), { mode: 'read' })).toBe('read');
  });

  it('passes also where the work had to wait for another instance', async () => {
    const other = await locks.holdElsewhere('order:7');
    const work = held(() => service.using('order:7', () => 'paid'));
    await sleep(5);
    await other.release();
    expect(await work).toBe('paid');
  });

  it('rejects with the error of the work', async () => {
    await expect(held(() => service.using('order:7', () => Promise.reject(new Error('broke'))))).rejects.toThrow(
      'broke',
    );
  });

  const WRONG: [string, () => unknown, RegExp][] = [
    ['takes no lock', () => sleep(1), /was never acquired\.\n\nWhat happened:\n {2}no lock was taken/],
    [
      'locks another name',
      () => service.using('order:8', () => 1),
      /never acquired\. The work acquired "order:8"\.\n\nWhat happened:\n {2}acquired "order:8" \(exclusive, token \d+\)\n/,
    ],
    [
      'goes on after the release',
      async () => (await service.using('order:7', () => 1), turns()),
      /released before the work ended/,
    ],
    [
      'looks before it locks',
      async () => (await turns(), service.using('order:7', () => 1)),
      /waited for something else/,
    ],
    [
      'locks twice',
      async () => (await service.using('order:7', () => 1), service.using('order:7', () => 1)),
      /released and acquired again/,
    ],
    [
      'loses the lease',
      () => service.using('order:7', () => locks.lose('order:7', 'maxHold')),
      /the lease was lost \(maxHold\)/,
    ],
  ];

  it.each(WRONG)('fails where the work %s', async (_, work, message) => {
    expect(await failure(held(work))).toMatch(message);
  });

  it('fails in another mode', async () => {
    const work = () => service.using('order:7', { mode: 'read' }, () => 1);
    expect(await failure(held(work, { mode: 'write' }))).toContain('it was held in mode read, not write');
  });

  it('says nothing of a lock that was held before', async () => {
    await using _lease = await service.acquire('order:7');
    expect(await failure(held(() => 1))).toMatch(
      /held "order:7" already .*, acquired at .*lock-assertions\.test\.ts:\d+/,
    );
  });

  describe('with touching', () => {
    const stock = new Stock();
    const guarded = (work: () => unknown) => held(work, { touching: stock });

    it('lets the work wait for other things outside of the lock', async () => {
      const work = async () => {
        await sleep(1);
        const left = await service.using('order:7', () => stock.read());
        await sleep(1);
        return left;
      };
      expect(await guarded(work)).toBe(1);
      expect(Object.keys(stock)).toEqual(['left']);
    });

    const TOUCHING: [string, () => unknown, RegExp][] = [
      [
        'before the lock',
        async () => (await stock.read(), service.using('order:7', () => 1)),
        /not held when Stock\.read was called/,
      ],
      [
        'after the lock',
        async () => (await service.using('order:7', () => 1), stock.read()),
        /not held when Stock\.read was called/,
      ],
      ['without waiting', () => service.using('order:7', () => void stock.read()), /Stock\.read/],
      ['nothing', () => service.using('order:7', () => 1), /called no method of an object in `touching`/],
    ];

    it.each(TOUCHING)('fails where the work touches %s', async (_, work, message) => {
      expect(await failure(guarded(work))).toMatch(message);
    });

    it('passes on what a synchronous method throws', async () => {
      const work = () => service.using('order:7', () => ledger.book(1));
      await expect(held(work, { touching: ledger })).rejects.toThrow('1 is too much');
    });
  });

  it('refuses bad input', async () => {
    await expect(locks.expectHeldDuring('', () => 1)).rejects.toThrow('name');
    await expect(locks.expectHeldDuring('a', 7 as never)).rejects.toThrow('work must be a function');
    await expect(held(() => 1, { mode: 'shared' as never })).rejects.toThrow('mode');
    await expect(held(() => 1, { touching: 7 as never })).rejects.toThrow('touching of expectHeldDuring');
  });
});

describe('expectNotHeld and expectNothingHeld', () => {
  it('pass where nothing is held', async () => {
    await service.using('order:7', { backgroundRelease: true }, () => 1);
    await expect(locks.expectNotHeld('order:7')).resolves.toBeUndefined();
    await expect(locks.expectNothingHeld()).resolves.toBeUndefined();
  });

  it('name the lease and where it was acquired', async () => {
    await using _lease = await service.acquire(['order:7', 'order:8']);
    await using _permit = await service.semaphore('pool', { permits: 2 }).acquire();
    const message = await failure(locks.expectNothingHeld());
    expect(message).toMatch(/^3 leases are still held:/);
    const here = /"(\S+)" \((\S+), token \d+\) by this application, acquired at .*lock-assertions\.test\.ts:\d+:\d+/g;
    expect([...message.matchAll(here)].map(([, resource, mode]) => `${resource} ${mode}`).toSorted()).toEqual([
      'order:7 exclusive',
      'order:8 exclusive',
      'pool semaphore',
    ]);
    expect(await failure(locks.expectNotHeld('order:7'))).toMatch(/^"order:7" is held:\n.*acquired at/);
    await locks.expectNotHeld('order:9');
  });
});

it('expectNothingHeld fails if a failure planned with failNext hit no command', async () => {
  locks.failNext('renew', 'notExecuted');
  expect(await failure(locks.expectNothingHeld())).toMatch(
    /^A failure planned with failNext never hit a command:\n .*renew/,
  );
  locks.failNext('acquire', 'refused', 'order:7');
  expect(await failure(locks.expectNothingHeld())).toMatch(/^2 failures planned with failNext/);
});

describe('expectExclusive', () => {
  let stock: Stock;
  beforeEach(() => {
    stock = new Stock();
  });

  const sell = async () => {
    const left = await stock.read();
    if (left > 0) await stock.write(left - 1);
    return left > 0;
  };

  it('passes where one run at a time touches what is protected', async () => {
    const runs = await locks.expectExclusive(() => service.using('stock', sell), { times: 3, touching: stock });
    expect(runs.filter((run) => run.status === 'fulfilled' && run.value)).toHaveLength(1);
    expect(runs).toHaveLength(3);
  });

  it('passes where each section is under the lock, and where a busy lock refuses', async () => {
    await locks.expectExclusive((section, index) => service.using('stock', () => section(() => index)));
    const runs = await locks.expectExclusive((section) => service.using('stock', { waitMs: 0 }, () => section()));
    expect(runs.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it('rejects with what a synchronous method throws in one of the runs', async () => {
    const run = (_: unknown, index: number) => service.using('ledger', () => ledger.book(index));
    await expect(locks.expectExclusive(run, { touching: ledger })).rejects.toThrow('1 is too much');
  });

  const names = ['a', 'b'];
  const WRONG: [string, () => Promise<unknown>, RegExp][] = [
    [
      'no lock',
      () => locks.expectExclusive(sell, { touching: stock }),
      /Two runs were inside at once: run 1 was in Stock\.read/,
    ],
    [
      'a check outside of the lock',
      () =>
        locks.expectExclusive(
          async () => {
            const left = await stock.read();
            await service.using('stock', () => stock.write(left - 1));
          },
          { touching: stock },
        ),
      /Two runs were inside at once/,
    ],
    [
      'locks of different names',
      () => locks.expectExclusive((_, index) => service.using(names[index]!, sell), { touching: stock }),
      /Two runs were inside at once/,
    ],
    [
      'a read lock',
      () => locks.expectExclusive((section) => service.using('stock', { mode: 'read' }, () => section())),
      /run 1 was in its section, and run 2 entered its section/,
    ],
    ['no section', () => locks.expectExclusive(() => service.using('stock', () => 1)), /No run called section\(\)/],
    [
      'no touch',
      () => locks.expectExclusive(() => service.using('stock', () => 1), { touching: stock }),
      /No run called a method/,
    ],
    [
      'no competition',
      () =>
        locks.expectExclusive((section, index) => (index === 0 ? service.using('stock', () => section()) : undefined)),
      /did not compete for a lock/,
    ],
    [
      'no lock at all',
      () => locks.expectExclusive((section, index) => (index === 0 ? section() : undefined)),
      /The runs took no lock/,
    ],
  ];

  it.each(WRONG)('fails with %s', async (_, assertion, message) => {
    expect(await failure(assertion())).toMatch(message);
  });

  it('rejects with the error of a run, and refuses bad input', async () => {
    const broken = locks.expectExclusive(() => service.using('stock', () => Promise.reject(new Error('broke'))));
    await expect(broken).rejects.toThrow('broke');
    await expect(locks.expectExclusive(sell, { times: 1 })).rejects.toThrow('times');
    await expect(locks.expectExclusive(7 as never)).rejects.toThrow('run must be a function');
  });
});
