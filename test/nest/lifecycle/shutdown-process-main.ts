// The program of shutdown-process.test.ts: an application in a process of its own, with a job chosen by its argument.
import 'reflect-metadata';
import { Injectable, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock } from '../../../lib/nest/decorators/lock.decorators.js';
import { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { RedisLockModule } from '../../../lib/nest/module/redis-lock.module.js';

const [connection, how] = process.argv.slice(2) as [string, 'idle' | 'finishes' | 'hangs' | 'closes' | 'releases'];
const tell = (text: string): void => void process.stdout.write(`${text}\n`);

@Injectable()
class Jobs implements OnApplicationBootstrap {
  onApplicationBootstrap(): void {
    if (how === 'idle' || how === 'closes' || how === 'releases') return;
    this.run().then(
      () => tell('job ended'),
      (error: Error) => tell(`job failed: ${error.name}`),
    );
  }

  @DistributedLock('job')
  async run(): Promise<void> {
    tell('job began');
    await new Promise((resolve) => how === 'finishes' && process.once('SIGTERM', () => setTimeout(resolve, 50)));
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection,
      leaseMs: 2_000,
      shutdown: { drainMs: how === 'hangs' || how === 'releases' ? 100 : 10_000 },
    }),
  ],
  providers: [Jobs],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
if (how === 'closes') {
  await app.close();
  tell('closed'); // and now nothing keeps the process alive
} else if (how === 'releases') {
  const locks = app.get(RedisLockService);
  const [fixed, renewed] = [await locks.acquire('a', { watchdog: false }), await locks.acquire('b')];
  await app.close();
  await renewed.release(); // it was lost with the shutdown
  await fixed.release().catch((error: Error) => tell(error.message));
  await fixed.release();
  await locks.inspect('a').catch((error: Error) => tell(error.message));
} else {
  app.enableShutdownHooks();
  // Otherwise nothing but the connections to Redis would keep it alive.
  setInterval(() => {}, 1_000).unref();
  tell('ready');
}
