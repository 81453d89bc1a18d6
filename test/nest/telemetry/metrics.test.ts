import { Injectable, Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import type { Meter, MeterProvider as Provider } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import {
  DistributedLock,
  InjectRedisLock,
  LockShutdownError,
  LockTimeoutError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { lockMetrics } from 'nestjs-redis-lock/prom-client';
import { SingletonInterval } from 'nestjs-redis-lock/schedule';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';
import { Registry } from 'prom-client';
import { eventually } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { inMemory, useApps } from '../nest-apps.js';

@Injectable()
class Orders {
  constructor(readonly locks: RedisLockService) {}

  @DistributedLock({ key: (id: string) => `order:${id}`, waitMs: 20 })
  async pay(_id: string, work: () => Promise<void> = async () => {}): Promise<void> {
    await work();
  }
}

@Injectable()
class Reports {
  @SingletonInterval('report', 60_000)
  async report(): Promise<void> {}
}

/** Reads metrics like a scrape of the SDK. */
function useSdk() {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meterProvider = new MeterProvider({ readers: [exporter] });
  const scrape = async (): Promise<string[]> => {
    const { resourceMetrics } = await exporter.collect();
    return new PrometheusSerializer('', false, undefined, true, true).serialize(resourceMetrics).split('\n');
  };
  return { meterProvider, scrape };
}

const labels = (group: string, service = 'default') =>
  `lock_service="${service}",lock_mode="exclusive",lock_group="${group}"`;

describe('the metrics of an application', () => {
  const start = useApps();

  it('are at 0 from the start, count each call, and return to 0', async () => {
    const { meterProvider, scrape } = useSdk();
    const { app } = await start({
      imports: [ScheduleModule.forRoot(), inMemory({ telemetry: openTelemetry({ meterProvider }) })],
      providers: [Orders, Reports],
    });
    const boot = await scrape();
    for (const line of [
      `nestjs_redis_lock_held{${labels('Orders.pay')}} 0`,
      `nestjs_redis_lock_waiting{${labels('Orders.pay')}} 0`,
      `nestjs_redis_lock_acquire_total{${labels('Orders.pay')},outcome="acquired"} 0`,
      `nestjs_redis_lock_acquire_total{${labels('Orders.pay')},error_type="LOCK_TIMEOUT",outcome="timeout"} 0`,
      `nestjs_redis_lock_lost_total{${labels('Orders.pay')},reason="notRenewed"} 0`,
      `nestjs_redis_lock_job_last_success{lock_service="default",lock_job="report"} 0`,
      `nestjs_redis_lock_job_runs_total{lock_service="default",lock_job="report",outcome="error"} 0`,
    ]) {
      expect(boot).toContain(line);
    }

    const orders = app.get(Orders);
    const done = gate();
    const first = orders.pay('7', () => done.opened);
    await eventually(async () => expect(await scrape()).toContain(`nestjs_redis_lock_held{${labels('Orders.pay')}} 1`));
    await expect(orders.pay('7')).rejects.toThrow(LockTimeoutError);
    const second = app.get(RedisLockService).acquire('order:7', { waitMs: 60_000 });
    await eventually(async () => expect(await scrape()).toContain(`nestjs_redis_lock_waiting{${labels('order')}} 1`));
    done.open();
    await first;
    await (await second).release();

    const after = await scrape();
    for (const line of [
      `nestjs_redis_lock_held{${labels('Orders.pay')}} 0`,
      `nestjs_redis_lock_held{${labels('order')}} 0`,
      `nestjs_redis_lock_waiting{${labels('Orders.pay')}} 0`,
      `nestjs_redis_lock_waiting{${labels('order')}} 0`,
      `nestjs_redis_lock_acquire_total{${labels('Orders.pay')},outcome="acquired"} 1`,
      `nestjs_redis_lock_acquire_total{${labels('order')},outcome="acquired"} 1`,
      `nestjs_redis_lock_acquire_total{${labels('Orders.pay')},error_type="LOCK_TIMEOUT",outcome="timeout"} 1`,
      `nestjs_redis_lock_wait_time_count{${labels('Orders.pay')}} 2`,
      `nestjs_redis_lock_hold_time_count{${labels('Orders.pay')}} 1`,
    ]) {
      expect(after).toContain(line);
    }
  });

  it('are those of each lock service by its name, of both packages, also with forRootAsync', async () => {
    const { meterProvider, scrape } = useSdk();
    const registry = new Registry();
    const telemetry = [openTelemetry({ meterProvider }), lockMetrics(registry)];
    @Injectable()
    class Both {
      constructor(
        readonly locks: RedisLockService,
        @InjectRedisLock('jobs') readonly jobs: RedisLockService,
      ) {}
    }
    const { app } = await start({
      imports: [
        inMemory({ telemetry }),
        RedisLockModule.forRootAsync({ service: 'jobs', useFactory: () => ({ connection: 'memory:', telemetry }) }),
      ],
      providers: [Both],
    });
    const { locks, jobs } = app.get(Both);
    const leases = [await locks.acquire('order:7'), await jobs.acquire('order:7'), await jobs.acquire('order:8')];
    for (const text of [await scrape(), (await registry.metrics()).split('\n')]) {
      expect(text).toContain(`nestjs_redis_lock_held{${labels('order')}} 1`);
      expect(text).toContain(`nestjs_redis_lock_held{${labels('order', 'jobs')}} 2`);
    }
    for (const lease of leases) await lease.release();
  });

  it('of a closed application return to 0 for held and waiting, and keep their counts', async () => {
    const { meterProvider, scrape } = useSdk();
    @Module({ imports: [inMemory({ telemetry: openTelemetry({ meterProvider }) })] })
    class AppModule {}
    const { app } = await start({ imports: [AppModule] });
    const locks = app.get(RedisLockService);
    await locks.acquire('order:7');
    const waiting = locks.acquire('order:7', { waitMs: 60_000 });
    waiting.catch(() => {});
    await eventually(async () => expect(await scrape()).toContain(`nestjs_redis_lock_waiting{${labels('order')}} 1`));
    await app.close();
    await expect(waiting).rejects.toThrow(LockShutdownError);
    const after = await scrape();
    expect(after).toContain(`nestjs_redis_lock_held{${labels('order')}} 0`);
    expect(after).toContain(`nestjs_redis_lock_waiting{${labels('order')}} 0`);
    expect(after).toContain(`nestjs_redis_lock_lost_total{${labels('order')},reason="shutdown"} 1`);
    expect(after).toContain(
      `nestjs_redis_lock_acquire_total{${labels('order')},error_type="LOCK_SHUTDOWN",outcome="shutdown"} 1`,
    );
  });

  it.each([
    ['makes no meter', { getMeter: () => fail() }],
    ['makes no instrument', { getMeter: () => new Proxy({} as Meter, { get: () => fail }) }],
    ['has instruments that throw', { getMeter: brokenMeter }],
  ] satisfies [string, Provider][])(
    'of a provider that %s are logged as missing once, and locks go on',
    async (_, meterProvider) => {
      const { app, log } = await start({
        imports: [inMemory({ telemetry: openTelemetry({ meterProvider }) })],
        providers: [Orders],
      });
      const logged = () => log.at('warn').filter((line) => line.includes('telemetry'));
      await eventually(async () => {
        await app.get(Orders).pay('7');
        expect(logged()).not.toEqual([]);
      });
      for (let i = 0; i < 3; i++) await app.get(Orders).pay('7');
      expect(logged()).toEqual([expect.stringContaining('the provider is broken')]);
    },
  );
});

function fail(): never {
  throw new Error('the provider is broken');
}

function brokenMeter(): Meter {
  const instrument = { record: fail, addCallback: () => {} };
  return new Proxy({} as Meter, { get: () => () => instrument });
}
