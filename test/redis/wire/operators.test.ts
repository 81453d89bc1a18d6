import { Redis } from 'ioredis';
import { FakeClock } from '../../support/world/fake-clock.js';
import { eventually } from '../../support/expect/eventually.js';
import { untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

const LONG = { leaseMs: 60_000, waitMs: 60_000 };

describe('what an operator sees', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  it('the holders and waiters of all processes, in every mode', async () => {
    const watch = await start();
    const [one, two] = await Promise.all([startProcess(60_000), startProcess(60_000)]);
    const exclusive = await one.ask('acquire', 'a:exclusive');
    const waiting = two.ask('acquire', 'a:exclusive', { mode: 'write', waitMs: 60_000 });
    const readers = [await one.ask('acquire', 'a:read', { mode: 'read' })];
    readers.push(await two.ask('acquire', 'a:read', { mode: 'read' }));
    const seats = await two.ask('acquire', 'a:seats', { permits: 5, count: 2 });
    const more = one.ask('acquire', 'a:seats', { permits: 5, count: 4, waitMs: 60_000 });
    await eventually(async () => {
      const states = await Promise.all(['a:exclusive', 'a:seats'].map((name) => watch.locks.inspect(name)));
      expect(states.map(({ waiters }) => waiters.length)).toEqual([1, 1]);
    });
    await one.ask('acquire', 'b');

    const seen = await two.ask('list', 'a:');
    const by = ({ instanceId }: { instanceId: string }, { fencingToken }: { fencingToken: number }) => ({
      instanceId,
      fencingToken,
      depth: 1,
    });
    expect(seen).toMatchObject([
      { resource: 'a:exclusive', mode: 'exclusive', holders: [by(one, exclusive)], waiters: [{ mode: 'write' }] },
      { resource: 'a:read', mode: 'read', holders: [by(one, readers[0]!), by(two, readers[1]!)], waiters: [] },
      {
        resource: 'a:seats',
        mode: 'semaphore',
        permits: { total: 5, available: 3 },
        holders: [{ ...by(two, seats), permits: 2 }],
        waiters: [{ instanceId: one.instanceId, mode: 'semaphore', permits: 4 }],
      },
    ]);
    for (const { holders, ttlMs } of seen) {
      for (const holder of holders) expect(holder.ttlMs).toBeGreaterThan(0);
      expect(ttlMs).toBe(Math.max(...holders.map((holder) => holder.ttlMs)));
    }
    // No secret: nothing of an owner id but the name of the instance.
    expect(JSON.stringify(seen)).not.toMatch(/process-\d+\//);
    await one.ask('release', 'a:exclusive');
    await two.ask('release', 'a:seats');
    await Promise.all([waiting, more]);
    expect(await two.ask('list', 'nothing')).toEqual([]);
  });

  it('only what begins with the prefix, whatever characters it has, among thousands of other keys', async () => {
    const { locks } = await start();
    const named = ['a*b[c]?', 'a*b[c]?/1', 'a*b[c]?}2', 'a*b[c]?%3'];
    const others = ['aXb[c]?', 'a*bc?', 'a*b[c]!', 'aab[c]x', 'a', 'z*', '\\', 'lock:{a*b[c]?', 'xa*b[c]?'];
    const leases = [];
    for (const name of [...named, ...others]) leases.push(await locks.acquire(name, LONG));
    const pipeline = admin().pipeline();
    for (let i = 0; i < 5_000; i++) pipeline.set(i % 2 ? `other:${i}` : `lock:{a*b[c]?${i}}:tick:1`, 'x');
    pipeline.set('other:lock:{a*b[c]?}', 'x').set('lock:a*b[c]?', 'x').set('clock:{a*b[c]?}', 'x');
    await pipeline.exec();
    const resources = async (options?: { prefix?: string; limit?: number }) =>
      (await locks.operators.list(options)).map(({ resource }) => resource);
    expect(await resources({ prefix: 'a*b[c]?' })).toEqual([...named].sort());
    expect(await resources({ prefix: '\\' })).toEqual(['\\']);
    expect(await resources()).toEqual([...named, ...others].sort());
    expect(await resources({ limit: 3 })).toHaveLength(3);
    expect(await resources({ prefix: 'a*b[c]?', limit: 2 })).toHaveLength(2);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await resources()).toEqual([]);
  });

  it("under the key prefix of the user's own client, and nothing of another one", async () => {
    const client = new Redis(redis().url, { keyPrefix: 'shop[1]:', lazyConnect: true });
    const [own, plain] = [await start({ connection: client }), await start()];
    const leases = [await own.locks.acquire('a', LONG), await plain.locks.acquire('b', LONG)];
    expect((await admin().keys('*{*')).sort()).toEqual(['lock:{b}', 'shop[1]:lock:{a}']);
    expect((await own.locks.operators.list()).map(({ resource }) => resource)).toEqual(['a']);
    expect((await plain.locks.operators.list()).map(({ resource }) => resource)).toEqual(['b']);
    expect(await own.locks.operators.forceRelease('a', tokenOf(leases[0]!))).toBe(true);
    expect(await admin().exists('shop[1]:lock:{a}')).toBe(0);
  });
});

/** What forceRelease() takes of a lease. */
const tokenOf = ({ fencingToken }: { fencingToken: number }) => ({ fencingToken });

describe('what an operator does', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  it('ends a lease: the next one has the lock at once, and its holder learns of it by its signal', async () => {
    // The clock of the next one stands still: it has the lock by the message, and not by a heartbeat.
    const [operator, next] = [await start(), await start({ clock: new FakeClock() })];
    const holder = await startProcess(3_000);
    const report = holder.ask('hold', 'x');
    await eventually(async () => expect(await admin().exists('x-witness')).toBe(1));
    const [seen] = (await operator.locks.inspect('x')).holders;
    const waiting = next.locks.acquire('x', LONG);
    await untilQueued(operator, 'x', next);
    expect(await operator.locks.operators.forceRelease('x', tokenOf(seen!))).toBe(true);
    const lease = await waiting;
    expect(lease.fencingToken).toBeGreaterThan(seen!.fencingToken);
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // a third of its lease, and more
    await holder.ask('letGo', 'x');
    const { reason, releaseError, afterLoss } = await report;
    expect({ reason, releaseError }).toEqual({ reason: 'takenOver', releaseError: undefined });
    expect(afterLoss.refused + afterLoss.accepted).toBeGreaterThan(0);
    // Its release comes too late to take anything from the next one.
    expect(await lease.verify()).toBe(true);
    await lease.release();
  });
});
