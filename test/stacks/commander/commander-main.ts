// The program of commander.slow.test.ts: nest-commander is CommonJS and requires Nest, which Jest cannot do with Nest
// 12.
import 'reflect-metadata';
import { once } from 'node:events';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Command, CommandFactory, CommandRunner } from 'nest-commander';
import { DistributedLock, RedisLockService } from 'nestjs-redis-lock';
import { CommandsModule, main, ReindexCommand } from './reindex-command.js';

@Injectable()
@Command({ name: 'fail' })
class FailCommand extends CommandRunner {
  @DistributedLock({ key: 'fail', waitMs: 500 })
  async run(): Promise<void> {
    throw new Error('failed under its lock');
  }
}

@Injectable()
@Command({ name: 'hold' })
class HoldCommand extends CommandRunner {
  /** Takes a moment longer than the signal. */
  @DistributedLock({ key: 'held', waitMs: 60_000 })
  async run(): Promise<void> {
    console.log('holds');
    await once(process, 'SIGTERM');
    await new Promise((resolve) => setTimeout(resolve, 50));
    console.log('has ended its work');
  }
}

@Injectable()
@Command({ name: 'wait' })
class WaitCommand extends CommandRunner {
  constructor(private readonly locks: RedisLockService) {
    super();
  }

  async run(): Promise<void> {
    console.log('waits');
    await this.locks.using('taken', { waitMs: 60_000 }, () => console.log('was granted'));
  }
}

@Module({ imports: [CommandsModule], providers: [FailCommand, HoldCommand, WaitCommand] })
class AllCommandsModule {}

const [how] = process.argv.slice(2);
if (how === 'forgotten') {
  const app = await NestFactory.createApplicationContext(CommandsModule, { logger: false });
  await app.get(ReindexCommand).run(['north']);
  const sockets = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap');
  console.log(`connections: ${sockets.length}`);
} else if (how === 'run') {
  process.argv.splice(2, 1);
  await CommandFactory.run(AllCommandsModule);
} else {
  await main(AllCommandsModule);
}
console.log('is through');
