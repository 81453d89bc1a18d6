// The program of a LeaderProcess (leader-process.ts): an application that campaigns for the leadership called mailer.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LeaderOnly } from '../../../../lib/features/leader/nest/leader-only.decorator.js';
import { RedisLockModule } from '../../../../lib/nest/module/redis-lock.module.js';
import { RedisLockService } from '../../../../lib/nest/redis-lock.service.js';
import { machineNow } from '../../../support/expect/machine-now.js';

/** A period in which it believed to lead. Times are the machine's monotonic clock, the same in all processes. */
export interface Reign {
  readonly fencingToken: number;
  readonly from: number;
  /** When it last was about to look, and then saw itself lead. */
  to: number;
}

const [connection, leaseMs] = process.argv.slice(2) as [string, string];
const reigns: Reign[] = [];

@Injectable()
class Mailer {
  @LeaderOnly('mailer')
  async send(): Promise<string | undefined> {
    return 'sent';
  }
}

@Module({
  imports: [RedisLockModule.forRoot({ connection, leaseMs: Number(leaseMs), instanceId: `process-${process.pid}` })],
  providers: [Mailer],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
app.enableShutdownHooks();
const mailer = app.get(Mailer);
const leadership = app.get(RedisLockService).campaign('mailer');

function look(): boolean {
  const at = machineNow();
  if (!leadership.isLeader()) return false;
  const fencingToken = leadership.fencingToken!;
  const reign = reigns.at(-1);
  if (reign?.fencingToken === fencingToken) reign.to = at;
  else reigns.push({ fencingToken, from: at, to: at });
  return true;
}

const verbs = {
  isLeader: look,
  reigns: () => reigns,
  resign: () => leadership.resign(),
  send: () => mailer.send(),
  /** Stops the whole process, and looks before anything else runs when it is continued. */
  stop(): boolean {
    process.kill(process.pid, 'SIGSTOP');
    return look();
  },
  /** After this, nothing of ours keeps the process alive. */
  async close(): Promise<void> {
    await app.close();
    clearInterval(looking);
    setImmediate(() => process.disconnect());
  },
};

export type LeaderVerbs = typeof verbs;

const looking = setInterval(look, 1);
process.on('message', ({ id, verb }: { id: number; verb: keyof LeaderVerbs }) => {
  void Promise.resolve(verbs[verb]()).then((value) => process.send!({ id, value }));
});
process.send!({ id: 0 });
