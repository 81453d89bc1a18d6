import { Controller, Get, Inject, Injectable, type OnApplicationBootstrap, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  InvalidLockOptionsError,
  type LeaderOnlyOptions,
  LeaderOnly,
  RedisLockService,
} from 'nestjs-redis-lock';
import { eventually, rejection, untilAborted } from '../../../support/expect/eventually.js';
import { useAdmin } from '../../../support/redis/lock-instances.js';
import { inMemory, useApps } from '../../../nest/nest-apps.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { gate, track } from '../../../support/expect/tracked.js';

let story: string[] = [];
beforeEach(() => (story = []));

@Injectable()
class Mailer {
  constructor(readonly locks: RedisLockService) {}

  @LeaderOnly('mailer')
  async send(to: string): Promise<string | undefined> {
    return `sent to ${to} by ${this.locks.current('leader:mailer')!.fencingToken > 0}`;
  }

  @LeaderOnly({ name: 'mailer', leaseMs: 2_000 })
  async count(): Promise<number | undefined> {
    return this.locks.current('leader:mailer')!.fencingToken;
  }

  @LeaderOnly('mailer')
  async fail(): Promise<void> {
    throw new Error('of the method');
  }

  @LeaderOnly('mailer')
  async lockToo(): Promise<string | undefined> {
    return this.locked();
  }

  @DistributedLock('mailer')
  async locked(): Promise<string> {
    return 'locked';
  }

  @LeaderOnly('mailer')
  async untilLost(): Promise<string | undefined> {
    story.push('works');
    await untilAborted(this.locks.current('leader:mailer')!.signal);
    return 'done';
  }

  @LeaderOnly({ name: 'mailer', onLost: 'ignore' })
  async afterLoss(): Promise<string | undefined> {
    await untilAborted(this.locks.current('leader:mailer')!.signal);
    return 'finished';
  }

  @LeaderOnly('mailer')
  async untilToldTo(end: Promise<void>): Promise<string | undefined> {
    await end;
    return 'done';
  }
}

describe('@LeaderOnly', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  const startMailer = async (...providers: (typeof Mailer)[]) => {
    const { app, log } = await start({
      imports: [inMemory({ connection: redis().url, keyPrefix: 'nest', leaseMs: 2_000, shutdown: { drainMs: 5_000 } })],
      providers: providers.length > 0 ? providers : [Mailer],
    });
    return { app, log, mailer: app.get(Mailer, { strict: false }), locks: app.get(RedisLockService) };
  };
  afterEach(() => admin().flushall());

  it('runs on one instance, which is elected when the applications start, and is skipped on the other one', async () => {
    const first = await startMailer();
    await first.locks.leadership('mailer')!.whenElected();
    const second = await startMailer();
    expect(await first.mailer.send('ann')).toBe('sent to ann by true');
    expect(await second.mailer.send('ann')).toBeUndefined();
    expect(second.locks.leadership('mailer')!.isLeader()).toBe(false);
    expect((await admin().keys('nest:{*')).sort()).toEqual(['nest:{leader:mailer}', 'nest:{leader:mailer}:waiters']);
    expect(first.log.lines).toContainEqual({ level: 'log', context: 'RedisLock', message: 'Leads "mailer".' });
  });

  it('is logged once, for all leaderships; waits of candidates only on debug', async () => {
    @Injectable()
    class Many implements OnApplicationBootstrap {
      constructor(readonly locks: RedisLockService) {}

      @LeaderOnly('reports')
      async report(): Promise<void> {}

      onApplicationBootstrap(): void {
        for (let index = 1; index <= 5; index++) this.locks.campaign(`shard-${index}`);
        this.locks.campaign('resigned', { signal: AbortSignal.abort() });
      }
    }
    const options = { connection: redis().url, leaseMs: 60_000 };
    const other = (await start({ imports: [inMemory(options)] })).app.get(RedisLockService);
    await Promise.all([1, 2, 3, 4].map((index) => other.campaign(`shard-${index}`).whenElected()));
    const { app, log } = await start({ imports: [inMemory(options)], providers: [Many] });
    const ofOther = 'Campaigns for 4 leaderships: "shard-1", "shard-2", "shard-3", "shard-4". Leads all of them.';
    const said = () =>
      log.lines.filter(
        ({ context, message }) => context === 'RedisLock' && message !== ofOther && !message.includes('SIGTERM'),
      );
    const summary =
      'Campaigns for 6 leaderships: "reports", "shard-1", "shard-2", "shard-3", "shard-4" ' +
      'and 1 more. Leads 2 of them.';
    await eventually(() => expect(log.at('log')).toContain(summary));
    // Nest has one logger for all applications of a process.
    expect(log.at('log')).toContain(ofOther);
    app.get(RedisLockService).campaign('late');
    expect(said().map(({ level, message }) => `${level}: ${message}`)).toEqual([
      expect.stringMatching(/^log: Leads "(shard-5|reports)"\.$/),
      expect.stringMatching(/^log: Leads "(shard-5|reports)"\.$/),
      `log: ${summary}`,
      'debug: Campaigns for the leadership "late".',
    ]);
  });

  it('shares the candidate with campaign(), whose callbacks apply to the methods too', async () => {
    const { locks, mailer } = await startMailer();
    const leadership = locks.campaign('mailer', { onElected: () => story.push('elected') });
    await leadership.whenElected();
    expect(await mailer.count()).toBe(leadership.fencingToken);
    await leadership.resign();
    expect(await mailer.count()).toBeUndefined(); // it has resigned, and no call stands again
    expect(locks.leadership('mailer')).toBeUndefined();
    const again = locks.campaign('mailer');
    await again.whenElected();
    expect(await mailer.count()).toBe(again.fencingToken);
    expect(story).toEqual(['elected']);
  });

  it('logs the leader, and failing callbacks', async () => {
    const { locks, log } = await startMailer();
    const leadership = locks.campaign('mailer', { onElected: () => Promise.reject(new Error('of the callback')) });
    await eventually(() => expect(log.at('error')).toHaveLength(1));
    await leadership.resign();
    const lines = log.lines
      .filter(({ context }) => context === 'RedisLock')
      .map(({ level, message }) => [level, message]);
    expect(lines).toEqual([
      ['log', 'Leads "mailer".'],
      ['error', 'onElected of the campaign for "mailer" threw. The campaign continues. Error: of the callback'],
      ['log', 'No longer leads "mailer" (resigned).'],
    ]);
  });

  it('rethrows errors of the method, and may take an ordinary lock of the same name', async () => {
    const { locks, mailer } = await startMailer();
    await locks.leadership('mailer')!.whenElected();
    expect((await rejection(mailer.fail())).message).toBe('of the method');
    expect(await mailer.lockToo()).toBe('locked');
  });

  it('rejects if the term is lost, and not when the leader resigns', async () => {
    const { locks, mailer } = await startMailer();
    const leadership = locks.leadership('mailer')!;
    await leadership.whenElected();
    const [lost, ignored] = [track(mailer.untilLost()), track(mailer.afterLoss())];
    await admin().del('nest:{leader:mailer}');
    const loss = { code: 'LEASE_LOST', reason: 'takenOver', workFinished: true, value: 'done' };
    await eventually(() => expect(lost.error).toMatchObject(loss));
    await eventually(() => expect(ignored.value).toBe('finished'));
    await leadership.whenElected();
    const ended = mailer.untilLost();
    await leadership.resign();
    expect(await ended).toBe('done');
  });

  it('hands over when its application closes: running calls end first', async () => {
    const first = await startMailer();
    await first.locks.leadership('mailer')!.whenElected();
    const second = await startMailer();
    const elected = track(second.locks.leadership('mailer')!.whenElected());
    const work = gate();
    const call = track(first.mailer.untilToldTo(work.opened));
    const closed = first.app.close();
    await eventually(() => expect(first.locks.leadership('mailer')).toBeUndefined());
    expect(elected.state).toBe('pending');
    work.open();
    await closed;
    await eventually(() => expect(elected.state).toBe('fulfilled'), 1_500); // by message, long before the lease ends
    expect(call.value).toBe('done');
    expect(await first.mailer.send('ann')).toBeUndefined();
  });
});

describe('@LeaderOnly in applications of all kinds', () => {
  const start = useApps();

  it('in request-scoped and transient providers: the candidate runs from the start', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class OfRequest {
      constructor(@Inject(REQUEST) private readonly request: { url: string }) {}

      @LeaderOnly('of-request')
      async url(): Promise<string | undefined> {
        return this.request.url;
      }
    }
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient {
      @LeaderOnly('transient')
      async work(): Promise<string | undefined> {
        return 'worked';
      }
    }
    @Controller('urls')
    class Urls {
      constructor(
        private readonly ofRequest: OfRequest,
        private readonly transient: Transient,
      ) {}

      @Get(':id')
      async url(): Promise<string> {
        return `${await this.ofRequest.url()} ${await this.transient.work()}`;
      }
    }
    const { app, url } = await start({ imports: [inMemory()], providers: [OfRequest, Transient], controllers: [Urls] });
    const locks = app.get(RedisLockService);
    await Promise.all(['of-request', 'transient'].map((name) => locks.leadership(name)!.whenElected()));
    expect(await (await fetch(`${url}/urls/1`)).text()).toBe('/urls/1 worked');
  });

  it('without a start of the application: the first call begins the campaign, and is skipped', async () => {
    const testing = await Test.createTestingModule({ imports: [inMemory()], providers: [Mailer] }).compile();
    const [mailer, locks] = [testing.get(Mailer), testing.get(RedisLockService)];
    expect(locks.leadership('mailer')).toBeUndefined();
    expect(await mailer.send('ann')).toBeUndefined();
    await locks.leadership('mailer')!.whenElected();
    expect(await mailer.send('ann')).toBe('sent to ann by true');
    await testing.close();
  });

  it('with a mock in place of the service, which has the called methods', async () => {
    const campaign = (name: string) => ({
      resource: name,
      run: (work: (term: unknown) => unknown) => work({ fencingToken: 7 }),
    });
    @Injectable()
    class Simple {
      @LeaderOnly('simple')
      async work(): Promise<string | undefined> {
        return 'worked';
      }
    }
    for (const mock of [{ campaign }, { leadership: campaign }]) {
      const { app } = await start({
        imports: [inMemory()],
        providers: [Simple],
        override: (builder) => builder.overrideProvider(RedisLockService).useValue(mock),
      });
      expect(await app.get(Simple).work()).toBe('worked');
    }
  });

  it('of two lock services: a leadership of its own in each', async () => {
    @Injectable()
    class Both {
      @LeaderOnly('job')
      async one(): Promise<string | undefined> {
        return 'one';
      }

      @LeaderOnly({ name: 'job', service: 'billing', leaseMs: 700 })
      async other(): Promise<string | undefined> {
        return 'other';
      }
    }
    const { app } = await start({ imports: [inMemory(), inMemory({ service: 'billing' })], providers: [Both] });
    await app.get(RedisLockService).leadership('job')!.whenElected();
    await eventually(async () => expect(await app.get(Both).other()).toBe('other'));
    expect(await app.get(Both).one()).toBe('one');
    await app.get(RedisLockService).leadership('job')!.resign();
    expect([await app.get(Both).one(), await app.get(Both).other()]).toEqual([undefined, 'other']);
  });

  it('with different leases for one name: the application does not boot, and names the methods', async () => {
    @Injectable()
    class Other {
      @LeaderOnly({ name: 'mailer', leaseMs: 3_000 })
      async work(): Promise<void> {}
    }
    const error = await rejection(start({ imports: [inMemory()], providers: [Mailer, Other] }));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toMatch(/Mailer\.count and Other\.work .*: leaseMs 2000 and 3000\./);
  });
});

describe('@LeaderOnly among other decorators', () => {
  const start = useApps();

  /** Drops the metadata of the method, as careless decorators do. */
  function Careless(): MethodDecorator {
    return (_target, _key, descriptor: PropertyDescriptor) => {
      const original = descriptor.value as (...args: unknown[]) => unknown;
      descriptor.value = function (this: unknown, ...args: unknown[]) {
        return original.apply(this, args);
      };
    };
  }

  @Injectable()
  @Controller('jobs')
  class Jobs {
    constructor(private readonly locks: RedisLockService) {}

    @Cron('* * * * * *')
    @LeaderOnly('jobs')
    async cronAbove(): Promise<void> {
      story.push(`cron above, ${this.locks.current()?.resource}`);
    }

    @LeaderOnly('jobs')
    @Interval(10)
    async intervalBelow(): Promise<void> {
      story.push(`interval below, ${this.locks.current()?.resource}`);
    }

    @Get('above')
    @LeaderOnly('jobs')
    async above(): Promise<string | undefined> {
      return 'above';
    }

    @LeaderOnly('jobs')
    @Get('below')
    async below(): Promise<string | undefined> {
      return 'below';
    }

    @Get('other')
    @LeaderOnly('not-here')
    async other(): Promise<string | undefined> {
      return 'other';
    }

    @Careless()
    @LeaderOnly('careless')
    async careless(): Promise<void> {}

    @LeaderOnly('outer')
    @LeaderOnly('inner')
    @DistributedLock((id: string) => `job:${id}`)
    async several(_id: string, _dry = false): Promise<string | undefined> {
      return ['leader:outer', 'leader:inner', 'job:7'].map((name) => this.locks.current(name)?.resource).join();
    }
  }

  it('above and below @Cron, @Interval, @Get and locks: each does its work', async () => {
    const { app, url } = await start({
      imports: [inMemory(), ScheduleModule.forRoot()],
      controllers: [Jobs],
    });
    const locks = app.get(RedisLockService);
    const names = ['jobs', 'careless', 'outer', 'inner', 'not-here'];
    await Promise.all(names.map((name) => locks.leadership(name)!.whenElected()));
    await eventually(() =>
      expect(story).toEqual(expect.arrayContaining(['cron above, leader:jobs', 'interval below, leader:jobs'])),
    );
    expect(await (await fetch(`${url}/jobs/above`)).text()).toBe('above');
    expect(await (await fetch(`${url}/jobs/below`)).text()).toBe('below');
    expect(await app.get(Jobs).several('7')).toBe('leader:outer,leader:inner,job:7');
    await locks.leadership('not-here')!.resign();
    const skipped = await fetch(`${url}/jobs/other`);
    expect([skipped.status, await skipped.text()]).toEqual([200, '']);
  });
});

describe('@LeaderOnly with a mistake in it', () => {
  it.each<[string, unknown]>([
    ['resource', ''],
    ['resource', 'leader:mailer'],
    ['leaseMs', { name: 'x', leaseMs: 1 }],
    ['onLost', { name: 'x', onLost: 'retry' }],
    ['The leadership of Wrong.work', 7],
  ])('in %s is refused when the class is defined', (option, given) => {
    const define = (): void => {
      class Wrong {
        @LeaderOnly(given as LeaderOnlyOptions)
        async work(): Promise<void> {}
      }
      expect(Wrong).toBeUndefined(); // it gets no further
    };
    expect(define).toThrow(InvalidLockOptionsError);
    expect(define).toThrow(expect.objectContaining({ option }));
  });
});
