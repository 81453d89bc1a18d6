import {
  LockAbortedError,
  LockQueueFullError,
  LockShutdownError,
  LockTimeoutError,
} from '../../../lib/core/api/errors.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { expectNothingLeft, untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('nothing is left', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
  const queueIsGone = () => eventually(async () => expect(await admin().exists('lock:{x}:waiters')).toBe(0));

  it('of calls whose time is over', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x');
    const calls = times(6, (i) => rejection(b.locks.acquire('x', { waitMs: 150 + 40 * i })));
    calls.push(rejection(a.locks.acquire('x', { waitMs: 200 })));
    await untilQueued(a, 'x', b);
    for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(LockTimeoutError);
    await queueIsGone();
    expect(await lease.verify()).toBe(true);
    await lease.release();
    await expectNothingLeft(admin(), a, b);
  });

  it('of calls that are aborted, all at once or one after another', async () => {
    const [a, b] = [await start(), await start()];
    const lease = await a.locks.acquire('x');
    const together = new AbortController();
    const alone = times(3, () => new AbortController());
    const signals = [together.signal, ...alone.map(({ signal }) => signal), together.signal];
    const calls = signals.map((signal) => rejection(b.locks.acquire('x', { signal })));
    await untilQueued(a, 'x', b);
    together.abort();
    await untilQueued(a, 'x', b);
    alone.forEach((controller) => controller.abort());
    for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(LockAbortedError);
    await queueIsGone();
    await lease.release();
    await expectNothingLeft(admin(), a, b);
  });

  it('of a call that gives up but its place, which the next call of its process takes over', async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x');
    const controller = new AbortController();
    const leaving = rejection(b.locks.acquire('x', { signal: controller.signal }));
    await untilQueued(a, 'x', b);
    const calls = [sections.call(c), sections.call(b)];
    await untilQueued(a, 'x', b, c);
    controller.abort();
    await leaving;
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(b, c)).toEqual([0, 1]);
    await expectNothingLeft(admin(), a, b, c);
  });

  it('of an instance that shuts down while its calls wait, in Redis or behind each other', async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    const lease = await a.locks.acquire('x');
    const turnedAway = [b, b, b, a].map(({ locks }) => rejection(locks.acquire('x', { waitMs: 60_000 })));
    await untilQueued(a, 'x', b);
    const waiting = c.locks.acquire('x', { waitMs: 60_000 });
    await untilQueued(a, 'x', b, c);
    await b.locks.shutdown(0);
    await untilQueued(a, 'x', c);
    const down = a.locks.shutdown(5_000);
    for (const error of await Promise.all(turnedAway)) expect(error).toBeInstanceOf(LockShutdownError);
    await lease.release();
    await down;
    await (await waiting).release();
    await expectNothingLeft(admin(), c);
  });

  it('of calls that find the queue full', async () => {
    const [a, b, c] = [await start(), await start(), await start()];
    const lease = await a.locks.acquire('x');
    const waiting = b.locks.acquire('x', { maxWaiters: 1 });
    await untilQueued(a, 'x', b);
    const refused = [b, c, c].map(({ locks }) => rejection(locks.acquire('x', { maxWaiters: 1 })));
    for (const error of await Promise.all(refused)) expect(error).toBeInstanceOf(LockQueueFullError);
    await untilQueued(a, 'x', b);
    await lease.release();
    await (await waiting).release();
    await expectNothingLeft(admin(), a, b, c);
  });

  it('of processes that are killed as holder and as waiters, when their time in Redis is over', async () => {
    const witness = await start();
    const [holder, ...waiters] = await Promise.all(times(3, () => startProcess(3_000)));
    await holder!.ask('acquire', 'x');
    const lost = waiters.map((each) => rejection(each.ask('acquire', 'x')));
    await eventually(async () => expect((await witness.store.inspect('x')).waiters).toHaveLength(2));
    await Promise.all([holder!, ...waiters].map((each) => each.kill()));
    await Promise.all(lost);
    await expectNothingLeft(admin(), witness);
  });

  it('of a process that ends by itself after its shutdown, although calls of it waited', async () => {
    const a = await start();
    const lease = await a.locks.acquire('x', { leaseMs: 60_000 });
    const child = await startProcess(60_000);
    const turnedAway = times(3, () => rejection(child.ask('acquire', 'x', { waitMs: 600_000 })));
    const late = rejection(child.ask('acquire', 'x', { waitMs: 100 }));
    expect((await late).message).toMatch(/LockTimeoutError/);
    await eventually(async () => expect((await a.store.inspect('x')).waiters).toHaveLength(1));
    const exited = new Promise((resolve) => child.child.once('exit', (code, signal) => resolve([code, signal])));
    await child.ask('shutdown');
    for (const error of await Promise.all(turnedAway)) expect(error.message).toMatch(/LockShutdownError/);
    expect(await exited).toEqual([0, null]);
    expect(await admin().exists('lock:{x}:waiters')).toBe(0);
    await lease.release();
    await expectNothingLeft(admin(), a);
  });
});
