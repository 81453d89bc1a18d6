// The program of boot-process.test.ts: an application in a process of its own that fails to start.
import 'reflect-metadata';
import {
  type DynamicModule,
  Injectable,
  type LoggerService,
  Module,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { RedisLockModule } from '../../../lib/nest/module/redis-lock.module.js';
import type { RedisLockModuleOptions } from '../../../lib/nest/module/module-options.js';
import { RedisLockService } from '../../../lib/nest/redis-lock.service.js';

const [options, how] = process.argv.slice(2) as [string, 'factory' | 'init' | 'compiled'];
const tell = (text: string): void => void process.stdout.write(`${text}\n`);
const silent: LoggerService = { log() {}, error() {}, warn() {} };
const [locksModule, ...otherModules] = (JSON.parse(options) as [RedisLockModuleOptions]).map((given) =>
  RedisLockModule.forRoot({ ...given, attemptTimeoutMs: 300, waitMs: 2_000 }),
) as [DynamicModule, ...DynamicModule[]];

@Injectable()
class Migrations implements OnModuleInit {
  constructor(private readonly locks: RedisLockService) {}

  async onModuleInit(): Promise<void> {
    await this.locks.using('migrations', () => {}).catch(() => {});
    throw new Error('a migration failed');
  }
}

const failingFactory: Provider = {
  provide: 'FAILING',
  inject: [RedisLockService],
  useFactory: () => {
    throw new Error('a factory failed');
  },
};

@Module({ imports: [locksModule, ...otherModules], providers: [Migrations] })
class FailingModule {}

async function useWithoutStart(): Promise<void> {
  const locks = (await Test.createTestingModule({ imports: [locksModule] }).compile()).get(RedisLockService);
  await locks.acquire('job', { leaseMs: 300, watchdog: false });
  // Nothing but this call is under way in the process.
  const next = await locks.acquire('job');
  tell(`waited: ${await next.verify()}`);
  await next.release();
}

async function fail(boot: Promise<unknown>): Promise<void> {
  await boot.then(
    () => tell('booted'),
    (error: Error) => tell(error.message),
  );
}

if (how === 'compiled') await useWithoutStart();
else if (how === 'factory')
  await fail(
    Test.createTestingModule({ imports: [locksModule, ...otherModules], providers: [failingFactory] })
      .setLogger(silent)
      .compile(),
  );
else await fail(NestFactory.createApplicationContext(FailingModule, { logger: false, abortOnError: false }));
