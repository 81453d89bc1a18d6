import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import type { INestApplication } from '@nestjs/common';
import type { Job, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { LeaseLostError, LockBusyError, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { useApps } from '../../nest/nest-apps.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { Inbox, InboxWorker, REDIS } from './inbox.js';
import { Patient, Retried, Scoped, seenByJobs, Slow, SlowUntilClosed } from './processors.js';
import { Orders, Sales, Stock } from './orders.js';
import { queueOf, withQueues } from './queues.js';
import { Shipments } from './shipments.js';

/** A request to a stock. */
interface Sale {
  readonly fencingToken: number;
  readonly signal: AbortSignal;
  readonly end: ReturnType<typeof gate>;
}

class TestStock extends Stock {
  readonly sales: Sale[] = [];

  async sell(_item: string, _order: string, fencingToken: number, signal: AbortSignal): Promise<boolean> {
    const end = gate();
    this.sales.push({ fencingToken, signal, end });
    await end.opened;
    signal.throwIfAborted();
    return true;
  }
}

class LockedProcessor extends WorkerHost {
  @LockHandler('x')
  async process(): Promise<void> {}
}
Processor('shipments')(LockedProcessor);

@Processor('shipments')
class LockedListener extends WorkerHost {
  async process(): Promise<void> {}

  @LockHandler('x')
  @OnWorkerEvent('completed')
  async completed(): Promise<void> {}
}

describe('@nestjs/bullmq', () => {
  const redis = useRedis();
  const start = useApps();
  const completed = (app: INestApplication, name: string, count: number): Promise<Job[]> =>
    eventually(async () => {
      const jobs = await queueOf(app, name).getCompleted();
      expect(jobs).toHaveLength(count);
      return jobs;
    });

  it('onBusy puts a job off, which costs it no attempt, and the place goes to another job', async () => {
    const { app } = await start({ imports: withQueues(redis().url, 'shipments'), providers: [Shipments] });
    const queue = queueOf(app, 'shipments');
    const held = await app.get(RedisLockService).acquire('customer:ann');
    const parcels = [1, 2, 3].map((parcel) => ({ customer: 'ann', parcel: `ann ${parcel}` }));
    const data = [...parcels, { customer: 'bob', parcel: 'bob 1' }];
    await queue.addBulk(data.map((each) => ({ name: 'ship', data: each })));
    const { shipped } = app.get(Shipments);
    await eventually(() => expect(shipped).toEqual(['bob 1']));
    await eventually(async () => expect(await queue.getDelayedCount()).toBe(3));
    await held.release();
    const jobs = await completed(app, 'shipments', 4);
    expect(new Set(shipped)).toEqual(new Set(data.map(({ parcel }) => parcel)));
    expect(jobs.map(({ attemptsMade }) => attemptsMade)).toEqual([1, 1, 1, 1]);
    expect(Math.max(...jobs.map(({ attemptsStarted }) => attemptsStarted))).toBeGreaterThan(1);
  });

  it('a job that waits for the lock for longer than lockDuration is renewed by BullMQ, and never stalled', async () => {
    const { app } = await start({ imports: withQueues(redis().url, 'patient'), providers: [Patient] });
    const { worker, seen } = app.get(Patient);
    const [renewed, stalled] = [countOf(worker, 'locksRenewed'), countOf(worker, 'stalled')];
    const locks = app.get(RedisLockService);
    const held = await locks.acquire('patient:7');
    await queueOf(app, 'patient').add('heal', { id: 7 });
    // Every half of lockDuration, so for one and a half of it.
    await eventually(() => expect(renewed()).toBeGreaterThanOrEqual(3));
    await held.release();
    const [job] = await completed(app, 'patient', 1);
    expect([stalled(), job!.attemptsStarted, job!.stalledCounter]).toEqual([0, 1, 0]);
    await eventually(() => expect(seen).toHaveLength(3));
    expect(seen).toEqual([
      ['active', 'active'],
      [7, 'patient:7', 'string', false],
      ['completed', 'patient:7', 7],
    ]);

    // An event has no caller: what a listener is rejected with is an unhandled rejection.
    const [listener] = worker.listeners('completed') as ((job: Job) => Promise<void>)[];
    await using _busy = await locks.acquire('patient:7');
    expect(await rejection(listener!(job!))).toBeInstanceOf(LockBusyError);
  });

  it('a processor that Nest creates for each job is locked too, by a key of its own job', async () => {
    const { app } = await start({ imports: withQueues(redis().url, 'scoped'), providers: [Scoped] });
    await queueOf(app, 'scoped').addBulk([1, 2].map((id) => ({ name: 'work', data: { id } })));
    await completed(app, 'scoped', 2);
    expect(seenByJobs).toEqual([
      [1, 'scoped:1'],
      [2, 'scoped:2'],
    ]);
  });

  it('the lock alone keeps no order: a job that is retried comes after those behind it', async () => {
    const { app } = await start({ imports: withQueues(redis().url, 'retried'), providers: [Retried] });
    const backoff = { type: 'fixed', delay: 300 };
    await queueOf(app, 'retried').addBulk(
      [1, 2].map((id) => ({ name: 'work', data: { id }, opts: { attempts: 2, backoff } })),
    );
    await completed(app, 'retried', 2);
    const { order } = app.get(Retried);
    expect(order).toHaveLength(3);
    expect(order.lastIndexOf(1)).toBe(2);
  });

  it('an inbox is handled in order, alone, and to its end, also after a failure', async () => {
    const client = new Redis(redis().url);
    const running = new Set<string>();
    const alone: boolean[] = [];
    class FailsOnce extends InboxWorker {
      private hasFailed = false;

      protected override async handle(customer: string, message: string): Promise<void> {
        alone.push(!running.has(customer));
        running.add(customer);
        await super.handle(customer, `${message} begun`);
        running.delete(customer);
        if (message === '3' && !this.hasFailed) {
          this.hasFailed = true;
          throw new Error('not yet');
        }
        await super.handle(customer, message);
      }
    }
    Processor('inbox', { concurrency: 5 })(FailsOnce);
    try {
      const { app } = await start({
        imports: withQueues(redis().url, 'inbox'),
        providers: [Inbox, FailsOnce, { provide: REDIS, useValue: client }],
      });
      const messages = Array.from({ length: 10 }, (_, index) => `${index + 1}`);
      for (const message of messages) {
        for (const customer of ['ann', 'bob']) await app.get(Inbox).add(customer, message);
      }
      await completed(app, 'inbox', 2 * messages.length);
      for (const customer of ['ann', 'bob']) {
        const handled = await client.lrange(`handled:${customer}`, 0, -1);
        expect(handled.filter((entry) => !entry.endsWith('begun'))).toEqual(messages);
        expect(await client.llen(`inbox:${customer}`)).toBe(0);
      }
      expect(alone).not.toContain(false);
    } finally {
      await client.quit();
    }
  });

  describe('a processor that takes the lock', () => {
    it('stops when its job is cancelled; a second attempt acquires the lock again', async () => {
      const { app, sales, locks, jobs } = await startSales();
      const [{ fencingToken, signal, end }] = sales as [Sale];
      const [holder] = (await locks.inspect('stock:book')).holders;
      expect(holder).toMatchObject({ fencingToken });
      const [job] = await queueOf(app, 'orders').getActive();
      app.get(Sales).worker.cancelJob(job!.id!, 'out of print');
      expect(signal.aborted).toBe(true);
      end.open();
      await eventually(() => expect(sales).toHaveLength(2));
      expect(sales[1]!.fencingToken).toBeGreaterThan(fencingToken);
      expect(sales[1]!.signal.aborted).toBe(false);
      sales[1]!.end.open();
      expect((await jobs()).map(({ attemptsMade }) => attemptsMade)).toEqual([2]);
      expect((await locks.inspect('stock:book')).holders).toEqual([]);
    });

    it('stops when the lease is lost', async () => {
      const { sales, locks, jobs } = await startSales();
      const [{ fencingToken, signal, end }] = sales as [Sale];
      await locks.forceRelease('stock:book', { fencingToken });
      await eventually(() => expect(signal.reason).toBeInstanceOf(LeaseLostError));
      end.open();
      await eventually(() => expect(sales).toHaveLength(2));
      sales[1]!.end.open();
      await jobs();
    });

    /** An order was placed, and its sale has begun. */
    async function startSales() {
      const stock = new TestStock();
      const { app, url } = await start({
        imports: withQueues(redis().url, 'orders'),
        controllers: [Orders],
        providers: [Sales, { provide: Stock, useValue: stock }],
      });
      await queueOf(app, 'orders').obliterate({ force: true });
      expect((await fetch(`${url}/orders/7/book`, { method: 'POST' })).status).toBe(202);
      const { sales } = stock;
      await eventually(() => expect(sales).toHaveLength(1));
      return { app, sales, locks: app.get(RedisLockService), jobs: () => completed(app, 'orders', 1) };
    }
  });

  describe('at shutdown', () => {
    const closing = async (processor: typeof Slow): Promise<Slow> => {
      const { app } = await start({ imports: withQueues(redis().url, 'slow'), providers: [processor] });
      const queue = queueOf(app, 'slow');
      await queue.obliterate({ force: true });
      await queue.addBulk([1, 2].map((id) => ({ name: 'work', data: { id } })));
      const slow: Slow = app.get(processor);
      await eventually(() => expect(slow.begun).toEqual([1]));
      let isDraining = false;
      app.get(RedisLockService).observe(({ type }) => (isDraining ||= type === 'draining'));
      const closed = app.close();
      await eventually(() => expect(isDraining || slow.worker.closing !== undefined).toBe(true));
      slow.end.open();
      await closed;
      expect(slow.begun).toEqual([1]);
      return slow;
    };

    it('a worker that is closed by its processor takes no job that it could not lock', async () => {
      expect((await closing(SlowUntilClosed)).errors).toEqual([]);
    });

    it('another worker still takes one, which fails: it is closed after the locks', async () => {
      expect((await closing(Slow)).errors).toEqual(['LockShutdownError']);
    });
  });

  it.each([
    [LockedProcessor, 'LockedProcessor.process'],
    [LockedListener, 'LockedListener.completed'],
  ])('an application with @LockHandler on a method of a processor does not start: %p', async (processor, where) => {
    const error = await rejection(start({ imports: withQueues(redis().url, 'shipments'), providers: [processor] }));
    expect(error.message).toMatch(`${where} has @LockHandler, which would never run`);
  });
});

function countOf(worker: Worker, event: 'locksRenewed' | 'stalled'): () => number {
  let count = 0;
  worker.on(event, () => count++);
  return () => count;
}
