import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import { Controller, Get, type INestApplication, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { SentryCron } from '@sentry/nestjs';
import { DistributedLock, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { SingletonCron } from 'nestjs-redis-lock/schedule';
import { Prices, PricesModule } from './sentry-jobs.js';

@Injectable()
class ChecksInAbove {
  @SentryCron('above')
  @SingletonCron('* * * * *', { name: 'above' })
  async run(): Promise<void> {}
}

@Controller()
class Shop {
  @Get('busy')
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async busy(): Promise<void> {}

  @Get('broken')
  @DistributedLock('broken')
  async broken(): Promise<void> {
    throw new Error('broken');
  }
}

const MINUTE_MS = 60_000;

/** The jobs on two instances, called by hand in one minute; and how a busy resource and an error are answered. */
export async function runJobs(connection: string): Promise<object> {
  const leftMs = MINUTE_MS - (Date.now() % MINUTE_MS);
  if (leftMs < 10_000) await new Promise((resolve) => setTimeout(resolve, leftMs + 100));
  const apps = [await start(connection), await start(connection)] as const;
  const [app] = apps;
  for (const each of apps) {
    await each.get(Prices).load();
    await each.get(Prices).reload();
    await each.get(ChecksInAbove).run();
  }
  const scheduled = [...app.get(SchedulerRegistry).getCronJobs().keys()];
  const get = async (path: string): Promise<number> => {
    const { port } = app.getHttpServer().address() as AddressInfo;
    return (await fetch(`http://127.0.0.1:${port}/${path}`)).status;
  };
  const busy = await app.get(RedisLockService).using('busy', () => get('busy'));
  const broken = await get('broken');
  for (const each of apps) await each.close();
  return { scheduled: scheduled.length, busy, broken };
}

async function start(connection: string): Promise<INestApplication> {
  @Module({
    imports: [RedisLockModule.forRoot({ connection }), ScheduleModule.forRoot(), PricesModule],
    providers: [ChecksInAbove],
    controllers: [Shop],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, { logger: false, forceCloseConnections: true });
  await app.listen(0, '127.0.0.1');
  return app;
}
