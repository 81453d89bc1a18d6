import { Injectable, Module } from '@nestjs/common';
import { Command, CommandFactory, CommandRunner } from 'nest-commander';
import {
  DistributedLock,
  key,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';

@Injectable()
@Command({ name: 'reindex', arguments: '<shop>' })
export class ReindexCommand extends CommandRunner {
  constructor(private readonly locks: RedisLockService) {
    super();
  }

  @DistributedLock({
    key: ([shop = '']: string[]) => key`index:${shop}`,
    waitMs: 60_000,
  })
  async run([shop]: string[]): Promise<void> {
    console.log(
      `${shop} is indexed under ${this.locks.current()?.resource}`,
    );
  }
}

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: process.env['REDIS_URL'] ?? 'redis://localhost:6379',
    }),
  ],
  providers: [ReindexCommand],
})
export class CommandsModule {}

export async function main(module = CommandsModule): Promise<void> {
  const app = await CommandFactory.createWithoutRunning(module, {
    logger: ['error', 'warn'],
    serviceErrorHandler: (error) => {
      console.error(error.message);
      // nest-commander would print the error and end with 0
      process.exitCode = 1;
    },
  });
  app.enableShutdownHooks(); // SIGTERM and Ctrl+C release the locks
  await CommandFactory.runApplication(app);
  await app.close(); // or the connection to Redis keeps the process alive
}
