import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { DistributedLock, key, RedisLockService } from 'nestjs-redis-lock';
import { useApps } from '../../nest/nest-apps.js';
import { eventually } from '../../support/expect/eventually.js';
import { unbundled } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { CONCURRENCY, Customers, type Done, REDIS } from './customers.js';
import { Orders, Stock } from './orders.js';
import { LEASE_MS, queueOf, STALLING, withQueues } from './queues.js';
import { RedisStock, SalesInAHurry } from './redis-stock.js';

/** The grant of a job's work. */
interface Granted {
  readonly token: number;
  readonly afterMs: number;
}

/** Takes over what the other process began. */
@Processor('killed', STALLING)
class Survivor extends WorkerHost {
  readonly granted: Granted[] = [];

  constructor(private readonly locks: RedisLockService) {
    super();
  }

  @DistributedLock({ key: (job: Job) => key`killed:${job.data.id}`, leaseMs: LEASE_MS })
  async process(job: Job): Promise<void> {
    this.granted.push({ token: this.locks.currentOrThrow().fencingToken, afterMs: Date.now() - job.processedOn! });
  }
}

describe('two workers, in two processes', () => {
  const start = useApps();
  let client: Redis;
  let worker: ChildProcess;
  let said: unknown[];

  // Before the server stops.
  afterAll(async () => {
    if (worker.exitCode === null && worker.signalCode === null) {
      worker.kill('SIGKILL');
      await once(worker, 'exit');
    }
    await client.quit();
  });
  const redis = useRedis();

  /** Collects the messages of worker-main.ts in `said`. */
  async function startWorker(): Promise<void> {
    const main = [...unbundled(new URL('worker-main.ts', import.meta.url)), redis().url];
    worker = spawn(process.execPath, main, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    said = [];
    createInterface({ input: worker.stdout! }).on('line', (line) => said.push(JSON.parse(line)));
    await eventually(() => expect(said).toEqual([{ isReady: true }]), 30_000);
  }

  beforeAll(async () => {
    client = new Redis(redis().url);
    await startWorker();
  });

  it('never do two jobs of a customer at once, and in the order of a list, do them in order, also after a failure', async () => {
    const todo = ['1', '2', 'fails once', ...Array.from({ length: 20 }, (_, index) => `${index + 4}`)];
    const { app } = await start({
      imports: withQueues(redis().url, 'customers'),
      providers: [Customers, { provide: REDIS, useValue: client }],
    });
    const queue = queueOf(app, 'customers');
    const customers = ['ann', 'bob'];
    for (const customer of customers) await client.rpush(`todo:${customer}`, ...todo);
    // Until all places of both workers are taken.
    const held = await app.get(RedisLockService).acquire(customers.map((customer) => key`customer:${customer}`));
    const jobs = todo.flatMap(() => customers.map((customer) => ({ customer })));
    await queue.addBulk(jobs.map((data) => ({ name: 'next', data, opts: { attempts: 2 } })));
    await eventually(async () => expect(await queue.getActiveCount()).toBe(2 * CONCURRENCY));
    await held.release();
    await eventually(async () => expect(await queue.getJobCountByTypes('completed')).toBe(jobs.length), 30_000);

    const done = await Promise.all(customers.map((customer) => client.lrange(`done:${customer}`, 0, -1)));
    const all = done.map((each) => each.map((text) => JSON.parse(text) as Done));
    const isTheFailed = (entry: string, index: number, entries: string[]): boolean => entry !== entries[index - 1];
    for (const each of all) expect(each.map(({ entry }) => entry).filter(isTheFailed)).toEqual(todo);
    expect(all.flat().filter(({ alone }) => !alone)).toEqual([]);
    expect(new Set(all.flat().map(({ pid }) => pid))).toEqual(new Set([process.pid, worker.pid]));
  });

  it('the job of a stalled one is started by the other too, and the lock keeps the two apart', async () => {
    const { app } = await start({ imports: withQueues(redis().url, 'killed') });
    const held = await app.get(RedisLockService).acquire('killed:stopped');
    const queue = queueOf(app, 'killed');
    const { id } = await queue.add('work', { id: 'stopped' });
    await eventually(async () => expect(await queue.getActiveCount()).toBe(1));
    worker.kill('SIGSTOP');
    const other = await start({ imports: withQueues(redis().url, 'killed'), providers: [Survivor] });
    await eventually(async () => expect((await queue.getJob(id!))!.attemptsStarted).toBe(2));
    worker.kill('SIGCONT');
    await held.release();
    const { granted } = other.app.get(Survivor);
    await eventually(() => {
      expect(granted).toHaveLength(1);
      expect(said.at(-1)).toEqual({ id: 'stopped', token: expect.any(Number) });
    });
    expect(said.at(-1)).not.toMatchObject({ token: granted[0]!.token });
  });

  it('the job of a killed one is done by the other, when the lease has ended, with a greater fencing token', async () => {
    const adding = await start({ imports: withQueues(redis().url, 'killed') });
    const job = await queueOf(adding.app, 'killed').add('work', { id: 'killed' });
    await eventually(() => expect(said.at(-1)).toEqual({ id: 'killed', token: expect.any(Number) }));
    const { app } = await start({ imports: withQueues(redis().url, 'killed'), providers: [Survivor] });
    worker.kill('SIGKILL');
    const { granted } = app.get(Survivor);
    await eventually(() => expect(granted).toHaveLength(1));
    const { token } = said.at(-1) as { token: number };
    expect(granted[0]!.token).toBeGreaterThan(token);
    // It stalls 2 s after the kill, and the lease has 2 s left then at least.
    expect(granted[0]!.afterMs).toBeGreaterThan(100);
    await eventually(async () => expect(await job.getState()).toBe('completed'));
    expect((await queueOf(app, 'killed').getJob(job.id!))!.attemptsStarted).toBe(2);
  });

  it('sell no piece twice, and each order one, though one is killed in the middle of a sale', async () => {
    const [PIECES, ORDERS] = [10, 30];
    await startWorker();
    await client.set('left:book', PIECES);
    const shop = await start({ imports: withQueues(redis().url, 'orders'), controllers: [Orders] });
    const place = (order: number) => fetch(`${shop.url}/orders/${order}/book`, { method: 'POST' });
    const answers = await Promise.all(Array.from({ length: ORDERS }, (_, order) => place(order)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    await eventually(() => expect(said.at(-1)).toEqual({ sells: expect.any(String) }));
    const sold = (): Promise<Record<string, string>> => client.hgetall('sold:book');
    expect(Object.keys(await sold())).toHaveLength(3);

    const { app } = await start({
      imports: withQueues(redis().url, 'orders'),
      providers: [SalesInAHurry, { provide: REDIS, useValue: client }, { provide: Stock, useClass: RedisStock }],
    });
    worker.kill('SIGKILL');
    const queue = queueOf(app, 'orders');
    await eventually(async () => expect(await queue.getJobCountByTypes('completed')).toBe(ORDERS), 30_000);
    const jobs = await queue.getCompleted();
    const served = jobs.filter(({ returnvalue }) => returnvalue).map(({ data }) => (data as { order: string }).order);
    expect(Object.keys(await sold()).sort()).toEqual(served.sort());
    expect([served.length, await client.get('left:book')]).toEqual([PIECES, '0']);
  });
});
