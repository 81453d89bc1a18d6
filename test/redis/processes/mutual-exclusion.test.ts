import { LockTimeoutError } from '../../../lib/core/api/errors.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';

describe('only one at a time', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  /** By counter value, which is the order of the grants. */
  const expectCountedExactly = async (grants: [number, number][], total: number): Promise<void> => {
    expect(await admin().get('counter')).toBe(String(total));
    const sorted = grants.sort(([a], [b]) => a - b);
    expect(sorted.map(([value]) => value)).toEqual(Array.from({ length: total }, (_, i) => i + 1));
    for (let i = 1; i < total; i++) expect(sorted[i]![1]).toBeGreaterThan(sorted[i - 1]![1]);
  };

  it('three processes count exactly, with tokens that grow in the order of the grants', async () => {
    const processes = await Promise.all([startProcess(), startProcess(), startProcess()]);
    const grants = await Promise.all(processes.map((each) => each.ask('increment', 'x', 'counter', 20, 4)));
    await expectCountedExactly(grants.flat(), 3 * 20 * 4);
    expect((await admin().keys('*')).sort()).toEqual(['counter', 'lock:fence']);
  });

  it('also on a network that breaks again and again', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const processes = await Promise.all([startProcess(10_000, proxy.url), startProcess(), startProcess()]);
    let isDone = false;
    const breaking = (async () => {
      while (!isDone) {
        const before = Number(await admin().get('counter'));
        await eventually(async () => {
          if (!isDone) expect(Number(await admin().get('counter'))).toBeGreaterThan(before + 5);
        });
        proxy.cut();
      }
    })();
    const grants = await Promise.all(processes.map((each) => each.ask('increment', 'x', 'counter', 10, 3)));
    isDone = true;
    await breaking;
    await expectCountedExactly(grants.flat(), 3 * 10 * 3);
  });

  it('a process that is killed again and again under the lock holds nobody up for longer than its lease', async () => {
    const { locks } = await start();
    const tokens: number[] = [];
    for (let i = 0; i < 3; i++) {
      const victim = await startProcess(300);
      tokens.push((await victim.ask('acquire', 'x')).fencingToken);
      await victim.kill();
      await using lease = await locks.acquire('x', { waitMs: 60_000 });
      tokens.push(lease.fencingToken);
    }
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  it('two callers who name the same resources in different orders never wait for each other', async () => {
    const [a, b] = [await start(), await start()];
    let inside = 0;
    const work = async (): Promise<void> => {
      expect(++inside).toBe(1);
      await new Promise(setImmediate);
      inside--;
    };
    const calls = Array.from({ length: 10 }, (_, i) =>
      (i % 2 ? a : b).locks.using(i % 2 ? ['x', 'y', 'z'] : ['z', 'y', 'x'], { waitMs: 60_000 }, work),
    );
    await Promise.all(calls);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('a call for several resources that times out leaks none of them', async () => {
    const [a, b] = [await start(), await start()];
    await a.locks.acquire('y');
    const error = await rejection(b.locks.acquire(['x', 'y', 'z'], { waitMs: 500 }));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(await admin().exists('lock:{x}', 'lock:{z}')).toBe(0);
    expect(await b.locks.tryAcquire(['z', 'y'])).toBeNull();
    expect(await admin().exists('lock:{x}', 'lock:{z}')).toBe(0);
    await eventually(async () => expect(await admin().exists('lock:{y}:waiters')).toBe(0));
  });

  it('the default lease outlives work that takes longer than it', async () => {
    const [a, b] = [await start({ defaults: { leaseMs: 2_000 } }), await start()];
    let inside = 0;
    const work = async (): Promise<void> => {
      expect(++inside).toBe(1);
      expect(await rejection(b.locks.acquire('x', { waitMs: 4_500 }))).toBeInstanceOf(LockTimeoutError);
      inside--;
    };
    await a.locks.using('x', undefined, work);
    expect((await b.locks.acquire('x')).isHeld()).toBe(true);
  });
});
