import { Controller, type INestApplication, Injectable, Logger } from '@nestjs/common';
import type { RegisteredGroup } from '../../../lib/kernel/events/observers.js';
import { Test } from '@nestjs/testing';
import { ScheduleModule } from '@nestjs/schedule';
import {
  DistributedLock,
  DistributedSemaphore,
  key,
  LeaderOnly,
  type LockEvent,
  RedisLockService,
} from 'nestjs-redis-lock';
import type { LockTelemetry } from 'nestjs-redis-lock/telemetry';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
import { inMemory, LogBook } from '../nest-apps.js';

@Injectable()
class Orders {
  @DistributedLock((id: string) => key`order:${id}`)
  async pay(_id: string): Promise<void> {}

  @DistributedSemaphore({ key: 'exports', permits: 2, group: 'exports of orders' })
  async export(): Promise<void> {}

  @DistributedLock({ key: 'elsewhere', service: 'other' })
  async elsewhere(): Promise<void> {}

  @LeaderOnly('mailer')
  async mail(): Promise<void> {}
}

@Controller()
class Reports {
  @SingletonCron('0 0 1 1 *')
  async nightly(): Promise<void> {}
}

const TWICE: LockTelemetry = { start: () => {} };

describe('groups in an application', () => {
  const registered: RegisteredGroup[] = [];
  const events: LockEvent[] = [];
  const telemetry: LockTelemetry = {
    start(source) {
      source.onRegistered((each) => registered.push(each));
      source.observe((event) => events.push(event));
    },
  };
  let log: LogBook;
  let app: INestApplication | undefined;

  async function start(options: Parameters<typeof inMemory>[0] = {}) {
    log = new LogBook();
    Logger.overrideLogger(log);
    const imports = [inMemory({ telemetry, ...options }), inMemory({ service: 'other' }), ScheduleModule.forRoot()];
    const module = await Test.createTestingModule({ imports, providers: [Orders], controllers: [Reports] })
      .setLogger(log)
      .compile();
    app = module.createNestApplication();
    app.useLogger(log);
    await app.init();
    return app;
  }

  beforeEach(() => {
    registered.length = events.length = 0;
  });

  afterEach(async () => {
    await app?.close();
    app = undefined;
    Logger.overrideLogger(false);
  });

  it('are those of methods, jobs and leaderships, registered at boot, each with its lock service', async () => {
    const running = await start();
    expect(registered.toSorted((a, b) => (a.group < b.group ? -1 : 1))).toEqual([
      { kind: 'method', group: 'Orders.pay', mode: 'exclusive', name: 'Orders.pay' },
      { kind: 'job', group: 'Reports.nightly', mode: 'exclusive', name: 'Reports.nightly' },
      { kind: 'method', group: 'exports of orders', mode: 'semaphore', name: 'exports of orders' },
      { kind: 'leadership', group: 'leader:mailer', mode: 'exclusive', name: 'mailer' },
    ]);
    const orders = running.get(Orders);
    await orders.pay('7');
    await orders.export();
    await orders.elsewhere();
    await running.get(RedisLockService).using('stock:1', () => {});
    await running.get(RedisLockService).using('stock:1', { group: 'audit' }, () => {});
    const acquired = events.flatMap((event) => (event.type === 'acquired' ? [event] : []));
    expect(acquired.map(({ service, group }) => `${service} ${group}`)).toEqual(
      ['leader:mailer', 'Orders.pay', 'exports of orders', 'stock', 'audit'].map((group) => `default ${group}`),
    );
  });

  it('by a function that throws are _other, with one warning; a telemetry that throws too', async () => {
    const fail = (): never => {
      throw new Error('no table');
    };
    const running = await start({ group: fail, telemetry: [telemetry, { start: fail }] });
    for (let i = 0; i < 3; i++) await running.get(RedisLockService).using(`stock:${i}`, () => {});
    expect(events.flatMap((event) => (event.type === 'released' ? [event.group] : []))).toEqual(
      Array(3).fill('_other'),
    );
    expect(log.at('warn').filter((line) => line.includes('The module option'))).toEqual([
      expect.stringMatching(/^The module option telemetry threw/),
      expect.stringMatching(/^The module option group threw/),
    ]);
  });

  it.each([
    [{ group: 'order' as never }, 'group'],
    [{ telemetry: {} as never }, 'telemetry'],
    [{ telemetry: [null] as never }, 'telemetry'],
    [{ telemetry: [TWICE, TWICE] }, 'telemetry'],
    [{ warnAfterMs: 0 }, 'warnAfterMs'],
  ])('and options that cannot be right are refused: %p', (options, option) => {
    expect(() => inMemory(options)).toThrow(expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option }));
  });

  it.each(['', 'x'.repeat(101), '<b>', 'a\nb'])('nor is %p a group of a method', (group) => {
    expect(() => {
      class Wrong {
        @DistributedLock({ key: 'x', group })
        async run(): Promise<void> {}
      }
      return Wrong;
    }).toThrow(expect.objectContaining({ code: 'INVALID_LOCK_OPTIONS', option: 'group' }));
  });
});
