import { eventually } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { track } from '../../support/expect/tracked.js';

const WAIT_MS = 60_000;

describe('processes that count a latch down', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const startProcesses = (count: number) => Promise.all(Array.from({ length: count }, () => startProcess()));
  const untilWaiting = (count: number) =>
    eventually(async () => expect(await admin().zcard('lock:{import}:latch:waiters')).toBe(count));

  it('five workers, one of which is killed before it counts: its replacement counts for it', async () => {
    const [watcher, ...workers] = (await startProcesses(6)) as [LockProcess, ...LockProcess[]];
    const waiting = track(watcher.ask('waitForLatch', 'import', 5, WAIT_MS, 100));
    await untilWaiting(1);
    await workers[4]!.kill();
    await Promise.all(workers.slice(0, 4).map((worker, i) => worker.ask('countDown', 'import', 5, `shard-${i}`)));
    const replacement = await startProcess();
    expect(waiting.state).toBe('pending');
    expect(await replacement.ask('countDown', 'import', 5, 'shard-4')).toBe(0);
    await eventually(() => expect(waiting.state).toBe('fulfilled'));
  });

  it('one is killed right after it has counted, and its replacement counts the same shard: that is one', async () => {
    const [first, other] = (await startProcesses(2)) as [LockProcess, LockProcess];
    // Nobody knows whether it got so far.
    first.ask('countDown', 'import', 2, 'shard-0').catch(() => undefined);
    await eventually(async () => expect(await admin().hexists('lock:{import}:latch', '+shard-0')).toBe(1));
    await first.kill();
    const replacement = await startProcess();
    expect(await replacement.ask('countDown', 'import', 2, 'shard-0')).toBe(1);
    expect(await other.ask('countDown', 'import', 2, 'shard-1')).toBe(0);
  });

  it('one that waits is stopped while it opens, and finds it open when it is continued', async () => {
    const [stopped, awake, worker] = (await startProcesses(3)) as [LockProcess, LockProcess, LockProcess];
    const waiting = track(stopped.ask('waitForLatch', 'import', 1, WAIT_MS));
    const others = awake.ask('waitForLatch', 'import', 1, WAIT_MS);
    await untilWaiting(2);
    stopped.suspend();
    await worker.ask('countDown', 'import', 1);
    await others;
    expect(waiting.state).toBe('pending');
    stopped.resume();
    await eventually(() => expect(waiting.state).toBe('fulfilled'));
  });

  it('one that waits is killed: nobody else is delayed, and nothing of it stays', async () => {
    const [killed, awake, worker] = (await startProcesses(3)) as [LockProcess, LockProcess, LockProcess];
    killed.ask('waitForLatch', 'import', 1, WAIT_MS).catch(() => undefined);
    const waiting = awake.ask('waitForLatch', 'import', 1, WAIT_MS);
    await untilWaiting(2);
    await killed.kill();
    await worker.ask('countDown', 'import', 1);
    await waiting;
    expect(await admin().keys('*')).toEqual(['lock:{import}:latch']);
  });

  it('one that shuts down while it waits ends by itself', async () => {
    const process = await startProcess();
    const waiting = track(process.ask('waitForLatch', 'import', 1, WAIT_MS));
    await untilWaiting(1);
    await process.ask('shutdown');
    await eventually(() => expect(process.child.exitCode).toBe(0));
    expect(String(waiting.error)).toMatch(/LockShutdownError/);
  });
});
