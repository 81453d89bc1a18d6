// BullMQ 5 on Nest 11, in a process of its own: what its jobs saw, as one line of JSON.
import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import { Module, type OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DelayedError, type Job, type Queue } from 'bullmq';
import {
  type LockBusyError,
  DistributedLock,
  key,
  type LockError,
  LockHandler,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { setTimeout as sleep } from 'node:timers/promises';

const [url] = process.argv.slice(2) as [string];
const { hostname, port } = new URL(url);
const seen: unknown[] = [];

async function putOff(_busy: LockBusyError, job: Job, token?: string): Promise<never> {
  await job.moveToDelayed(Date.now() + 100, token);
  throw new DelayedError();
}

@Processor('shipments')
class Shipments extends WorkerHost implements OnModuleDestroy {
  constructor(private readonly locks: RedisLockService) {
    super();
  }

  @DistributedLock({ key: (job: Job) => key`customer:${job.data.customer}`, waitMs: 0, onBusy: putOff })
  async process({ data }: Job, _token?: string, cancel?: AbortSignal): Promise<void> {
    seen.push([data.customer, this.locks.currentOrThrow().resource, cancel?.aborted]);
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}

@Processor('shipments')
class NeverLocked extends WorkerHost {
  @LockHandler('x')
  async process(): Promise<void> {}
}

const imports = [
  RedisLockModule.forRoot({ connection: url }),
  BullModule.forRoot({ connection: { host: hostname, port: Number(port) } }),
  BullModule.registerQueue({ name: 'shipments' }),
];

@Module({ imports, providers: [Shipments] })
class AppModule {}

@Module({ imports, providers: [NeverLocked] })
class RefusedModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const queue = app.get<Queue>(getQueueToken('shipments'));
const held = await app.get(RedisLockService).acquire('customer:ann');
const job = await queue.add('ship', { customer: 'ann' });
const until = async (state: string): Promise<void> => {
  while ((await job.getState()) !== state) await sleep(10);
};
await until('delayed');
await held.release();
await until('completed');
const { attemptsMade } = (await queue.getJob(job.id!))!;
await app.close();

const refusal = await NestFactory.createApplicationContext(RefusedModule, { logger: false, abortOnError: false }).then(
  () => 'started',
  (error: LockError) => error.message,
);
process.stdout.write(JSON.stringify({ seen, attemptsMade, refusal }));
// The application that did not start has left the connection of its queue open.
process.exit();
