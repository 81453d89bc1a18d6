import {
  Body,
  Controller,
  Get,
  HttpCode,
  HttpException,
  Injectable,
  Module,
  Param,
  Post,
  UseInterceptors,
} from '@nestjs/common';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  InvalidLockOptionsError,
  InvalidResourceError,
  key,
  LockModuleMissingError,
  Once,
  type OnceDecoratorOptions,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
import { bindLocks, passThroughLocks, testLocks, withTestLocks } from 'nestjs-redis-lock/testing';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { eventually, rejection } from '../../../support/expect/eventually.js';
import { gate } from '../../../support/expect/tracked.js';
import { IdempotencyInterceptor } from './idempotency.interceptor.js';

describe('@Once', () => {
  let runs = 0;
  beforeEach(() => (runs = 0));

  @Injectable()
  class Reports {
    readonly tenant = 'acme';

    constructor(readonly locks: RedisLockService) {}

    @Once({ key: 'all', resultTtlMs: 60_000 })
    async all(): Promise<string> {
      return `run ${++runs} under ${this.locks.current()!.resource}`;
    }

    @Once({
      key(this: Reports, id: string) {
        return key`${this.tenant}:${id}`;
      },
      resultTtlMs: 60_000,
    })
    async one(id: string): Promise<{ id: string; run: number }> {
      return { id, run: ++runs };
    }

    @Once({ key: 'failing', resultTtlMs: 60_000 })
    async fail(): Promise<void> {
      throw new Error(`run ${++runs}`);
    }

    @Once({ key: 'large', resultTtlMs: 60_000, maxBytes: 10 })
    async large(): Promise<string> {
      return `${++runs} is large`;
    }
  }

  describe('@Once', () => {
    const start = useApps();

    const reports = async () => {
      const { app, log } = await start({ imports: [inMemory()], providers: [Reports] });
      return { log, app, one: app.get(Reports), locks: app.get(RedisLockService) };
    };

    it('runs the method once for all calls with the key, under its lock', async () => {
      const { one } = await reports();
      const calls = await Promise.all([one.all(), one.all(), one.all()]);
      expect(new Set([...calls, await one.all()])).toEqual(new Set(['run 1 under once:all']));
    });

    it('computes the key from the arguments, with the object as this', async () => {
      const { one, locks } = await reports();
      expect([await one.one('7'), await one.one('8'), await one.one('7')]).toEqual([
        { id: '7', run: 1 },
        { id: '8', run: 2 },
        { id: '7', run: 1 },
      ]);
      await locks.forget('acme:7');
      expect(await one.one('7')).toEqual({ id: '7', run: 3 });
    });

    it('rethrows errors of the method, and keeps none', async () => {
      const { one } = await reports();
      expect(await rejection(one.fail())).toEqual(new Error('run 1'));
      expect(await rejection(one.fail())).toEqual(new Error('run 2'));
    });

    it('names the method in events', async () => {
      const { one, locks } = await reports();
      const seen: string[] = [];
      locks.observe((event) => {
        if (event.type === 'onceReturned') seen.push(`${event.group} ${event.outcome}`);
      });
      await Promise.all([one.one('7'), one.one('7')]);
      await one.one('7');
      expect(seen.sort()).toEqual(['Reports.one hit', 'Reports.one run', 'Reports.one wait']);
    });

    it('logs once that a result is too large to keep', async () => {
      const { one, log } = await reports();
      expect([await one.large(), await one.large()]).toEqual(['1 is large', '2 is large']);
      const lines = log.lines.filter(({ message }) => message.includes('not stored'));
      expect(lines).toHaveLength(1);
      expect(lines[0]!.message).toMatch(
        /^A result of "once:large" \(group "Reports\.large"\) was not stored: it has 12 bytes/,
      );
    });

    it('works on a handler', async () => {
      @Controller()
      class Answers {
        @Get(':id')
        @Once({ key: (id: string) => key`answer:${id}`, resultTtlMs: 60_000 })
        async answer(@Param('id') id: string): Promise<string> {
          return `${id} ${++runs}`;
        }
      }
      const { url } = await start({ imports: [inMemory()], controllers: [Answers] });
      for (let call = 0; call < 2; call++) expect(await (await fetch(`${url}/7`)).text()).toBe('7 1');
    });

    it('does not warn of a method with @Cron, which the next instance does not run again', async () => {
      class Jobs {
        @Cron('0 0 1 1 *')
        @Once({ key: 'yearly', resultTtlMs: 60_000 })
        async yearly(): Promise<void> {}
      }
      const { log } = await start({ imports: [inMemory(), ScheduleModule.forRoot()], providers: [Jobs] });
      expect(log.lines.filter(({ level }) => level === 'warn')).toEqual([]);
    });

    it('is refused below @SingletonCron, whose tick would not run', () => {
      const define = () => {
        class Jobs {
          @SingletonCron('0 0 1 1 *', { name: 'yearly', timeZone: 'UTC' })
          @Once({ key: 'yearly', resultTtlMs: 60_000 })
          async yearly(): Promise<void> {}
        }
        return Jobs;
      };
      expect(define).toThrow(/@SingletonCron is above @Once, which may return without running the method/);
    });

    it('refuses an application on a quorum when it starts, and a call of the service', async () => {
      const quorum = { connections: ['redis://127.0.0.1:1', 'redis://127.0.0.1:2', 'redis://127.0.0.1:3'] };
      const imports = [RedisLockModule.forRoot({ quorum, attemptTimeoutMs: 10, shutdown: { drainMs: 0 } })];
      const failed = await rejection(start({ imports, providers: [Reports] }));
      expect(failed).toBeInstanceOf(InvalidLockOptionsError);
      expect(failed).toMatchObject({ option: 'quorum' });
      expect(failed.message).toMatch(/^@Once of Reports\.all cannot be used on a quorum/);
      const { app } = await start({ imports });
      const call = app.get(RedisLockService).once('a', { resultTtlMs: 1 }, () => 1);
      expect((await rejection(call)).message).toMatch(/^once\(\) cannot be used on a quorum/);
    });

    it.each<[string, object]>([
      ['no key', { resultTtlMs: 1 }],
      ['no TTL', { key: 'a' }],
      ['a signal', { key: 'a', resultTtlMs: 1, signal: new AbortController().signal }],
      ['a misspelt option', { key: 'a', resultTTLMs: 1 }],
      ['several keys', { key: ['a', 'b'], resultTtlMs: 1 }],
      ['a key in plain quotes', { key: 'report:${id}', resultTtlMs: 1 }],
      ['a reserved key', { key: 'leader:a', resultTtlMs: 1 }],
      ['a key that is too long with its prefix', { key: 'x'.repeat(508), resultTtlMs: 1 }],
      ['parse without serialize', { key: 'a', resultTtlMs: 1, parse: JSON.parse }],
    ])('refuses %s when the class is defined', (_, options) => {
      const define = () => {
        class Wrong {
          @Once(options as OnceDecoratorOptions)
          async run(): Promise<void> {}
        }
        return Wrong;
      };
      expect(define).toThrow(InvalidLockOptionsError);
    });

    it('refuses a key with a missing value, at the call', async () => {
      class Loose {
        @Once({ key: (id?: string) => `report:${id}`, resultTtlMs: 60_000 })
        async run(_id?: string): Promise<void> {}
      }
      const { app } = await start({ imports: [inMemory()], providers: [Loose] });
      expect(await rejection(app.get(Loose).run())).toBeInstanceOf(InvalidResourceError);
    });

    it('needs an object that Nest has created, or bindLocks', async () => {
      const made = new Reports(passThroughLocks());
      expect(await rejection(made.one('7'))).toBeInstanceOf(LockModuleMissingError);
      bindLocks(made, passThroughLocks());
      expect([await made.one('7'), await made.one('7')]).toMatchObject([{ run: 1 }, { run: 2 }]);
    });
  });

  describe('once in a test of an application', () => {
    @Module({ imports: [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })], providers: [Reports] })
    class AppModule {}

    const opened: TestingModule[] = [];
    afterEach(() => Promise.all(opened.splice(0).map((testing) => testing.close())));

    const application = async () => {
      const builder = withTestLocks(Test.createTestingModule({ imports: [AppModule] }), {
        fleet: 'reports',
        clock: 'manual',
      });
      const testing = await builder.compile();
      opened.push(testing);
      return { testing, reports: testing.get(Reports), locks: testLocks(testing) };
    };

    it('keeps results in memory, by the clock of the test, for all applications of the test', async () => {
      const first = await application();
      const second = await application();
      expect([await first.reports.one('7'), await second.reports.one('7')]).toMatchObject([{ run: 1 }, { run: 1 }]);
      await first.locks.advance(60_000);
      expect(await second.reports.one('7')).toMatchObject({ run: 2 });
    });

    it('loses its lease on request of the test, and then keeps nothing', async () => {
      const { testing, locks } = await application();
      const service = testing.get(RedisLockService);
      const work = async () => {
        await locks.lose('once:a');
        return 'done';
      };
      expect(await rejection(service.once('a', { resultTtlMs: 1_000 }, work))).toMatchObject({
        name: 'LeaseLostError',
        value: 'done',
      });
      expect(await service.once('a', { resultTtlMs: 1_000 }, () => 'again')).toBe('again');
    });

    it('fails if the test lets the command fail that takes the lock', async () => {
      const { testing, locks } = await application();
      const service = testing.get(RedisLockService);
      locks.failNext('acquire', 'refused', 'once:a');
      expect(await rejection(service.once('a', { resultTtlMs: 1_000 }, () => 1))).toMatchObject({
        code: 'LOCK_UNAVAILABLE',
      });
      await eventually(async () => expect(await service.list()).toEqual([]));
    });
  });
});

describe('the Idempotency-Key of the cookbook', () => {
  const start = useApps();
  let charged: number[];
  let opened: Promise<void> | undefined;

  @Controller('charges')
  @UseInterceptors(IdempotencyInterceptor)
  class Charges {
    @Post()
    @HttpCode(202)
    async charge(@Body('cents') cents: number): Promise<{ number: number }> {
      charged.push(cents);
      await opened;
      if (cents < 0) throw new HttpException('no', 402);
      return { number: charged.length };
    }
  }

  let url: string;
  beforeEach(async () => {
    charged = [];
    opened = undefined;
    const app = await start({ imports: [inMemory()], controllers: [Charges] });
    url = `${app.url}/charges`;
  });

  const charge = async (key: string | undefined, cents: number, user = 'ann') => {
    const headers: Record<string, string> = { 'content-type': 'application/json', authorization: user };
    if (key !== undefined) headers['idempotency-key'] = key;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ cents }) });
    return [answer.status, ((await answer.json()) as { number?: number }).number];
  };

  it('answers a request that comes again as the first time, and does the work once', async () => {
    expect([await charge('k1', 5), await charge('k1', 5)]).toEqual([
      [202, 1],
      [202, 1],
    ]);
    expect(await charge('k2', 5)).toEqual([202, 2]);
    expect(charged).toEqual([5, 5]);
  });

  it.each([undefined, '', 'with space', 'x'.repeat(256)])('answers 400 to the key %p', async (key) => {
    expect((await charge(key, 5))[0]).toBe(400);
    expect(charged).toEqual([]);
  });

  it('answers 409 while the first request runs', async () => {
    const end = gate();
    opened = end.opened;
    const first = charge('k1', 5);
    await eventually(() => expect(charged).toEqual([5]));
    expect((await charge('k1', 5))[0]).toBe(409);
    end.open();
    expect(await first).toEqual([202, 1]);
  });

  it('answers 422 to another request with the key', async () => {
    await charge('k1', 5);
    expect((await charge('k1', 6))[0]).toBe(422);
    expect(charged).toEqual([5]);
  });

  it('keeps the keys of users apart', async () => {
    expect([await charge('k1', 5), await charge('k1', 5, 'bob')]).toEqual([
      [202, 1],
      [202, 2],
    ]);
  });

  it('keeps no error, so that the request can be sent again', async () => {
    expect([(await charge('k1', -1))[0], (await charge('k1', -1))[0]]).toEqual([402, 402]);
    expect(charged).toEqual([-1, -1]);
  });
});
