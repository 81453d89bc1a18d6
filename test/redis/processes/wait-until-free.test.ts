import { eventually } from '../../support/expect/eventually.js';
import { track } from '../../support/expect/tracked.js';
import { type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const WAIT_MS = 60_000;

describe('processes that wait until a resource is free', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const startProcesses = (count: number) => Promise.all(Array.from({ length: count }, () => startProcess()));
  const untilWatching = (count: number) =>
    eventually(async () => expect(await admin().zcard('lock:{import}:waiters')).toBe(count));

  it('go on when the lease of a killed holder is over, and not before', async () => {
    const [holder, ...others] = (await startProcesses(3)) as [LockProcess, ...LockProcess[]];
    await holder.ask('acquire', 'import', { leaseMs: 2_000 });
    const waits = others.map((other) => track(other.ask('waitUntilFree', 'import', WAIT_MS, 100)));
    await untilWatching(2);
    await holder.kill();
    expect(waits.map(({ state }) => state)).toEqual(['pending', 'pending']);
    await eventually(() => expect(waits.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']));
    expect(await admin().exists('lock:{import}', 'lock:{import}:waiters')).toBe(0);
  });

  it('go on although they were stopped when the resource was released', async () => {
    const [holder, stopped, awake] = (await startProcesses(3)) as [LockProcess, LockProcess, LockProcess];
    await holder.ask('acquire', 'import');
    const waiting = track(stopped.ask('waitUntilFree', 'import', WAIT_MS));
    const others = awake.ask('waitUntilFree', 'import', WAIT_MS);
    await untilWatching(2);
    stopped.suspend();
    await holder.ask('release', 'import');
    await others;
    expect(waiting.state).toBe('pending');
    stopped.resume();
    await eventually(() => expect(waiting.state).toBe('fulfilled'));
  });

  it('delay no other process when they are killed, and leave nothing', async () => {
    const [holder, killed, awake] = (await startProcesses(3)) as [LockProcess, LockProcess, LockProcess];
    await holder.ask('acquire', 'import');
    killed.ask('waitUntilFree', 'import', WAIT_MS).catch(() => undefined);
    const waiting = awake.ask('waitUntilFree', 'import', WAIT_MS);
    await untilWatching(2);
    await killed.kill();
    await holder.ask('release', 'import');
    await waiting;
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });
});
