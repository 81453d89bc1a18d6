import { eventually, rejection } from '../../support/expect/eventually.js';
import { expectNothingLeft, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('nothing is left', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

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
