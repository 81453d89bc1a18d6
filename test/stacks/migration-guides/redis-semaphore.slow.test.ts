import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { jest } from '@jest/globals';
import { Mutex, Semaphore } from 'redis-semaphore';
import { type Public, useLocks, usePods } from './pods.js';
import type { Imports } from './redis-semaphore/after.js';
import { ALONE, crowd, type Locked, toldOfLoss, whileHeld } from './stories.js';

describe('from redis-semaphore', () => {
  const { redis, client, ofBoth } = usePods<Public<Imports>>({
    before: () => import('./redis-semaphore/before.js').then((it) => ({ ...it, Service: it.Imports })),
    after: () => import('./redis-semaphore/after.js').then((it) => ({ ...it, Service: it.Imports })),
  });
  const ours = useLocks(redis);

  it('one import at a time, however long it takes', async () => {
    const imports = await ofBoth(([one, two]) => crowd(1_800, [(work) => one.load(work), (work) => two.load(work)]));
    expect(imports).toEqual({ before: ALONE, after: ALONE });
  });

  it('one process cleans up', async () => {
    const cleaned = await ofBoth(async ([one, two]) => {
      const clean = (): Promise<boolean> => two.tryClean(async () => {});
      return [await whileHeld((work) => one.tryClean(work), clean), await clean()];
    });
    expect(cleaned).toEqual({ before: [false, true], after: [false, true] });
  });

  it('two downloads at a time, or a large one', async () => {
    const small = await ofBoth((pods) => {
      const calls = [...pods, ...pods].map(
        (pod): Locked =>
          (work) =>
            pod.download(false, work),
      );
      return crowd(50, calls);
    });
    expect(small).toEqual({ before: { ran: 4, atOnce: 2 }, after: { ran: 4, atOnce: 2 } });
    const large = await ofBoth(([one, two]) =>
      crowd(50, [(work) => one.download(true, work), (work) => two.download(false, work)]),
    );
    expect(large).toEqual({ before: ALONE, after: ALONE });
  });

  it('the signal of a lost lock aborts', async () => {
    const told = await ofBoth(([one]) =>
      toldOfLoss(
        3_000,
        (work) => one.load(work),
        () => client().flushall(),
      ),
    );
    expect(told).toEqual({ before: expect.any(Number), after: expect.any(Number) });
  });

  it('theirs grants by the clock of the process, ours by that of Redis', async () => {
    const options = { lockTimeout: 5_000, acquireAttemptsLimit: 1, refreshInterval: 0 };
    const [first, second] = [1, 2].map(() => new Semaphore(client(), 'a', 1, options));
    const [one, two] = [await ours(), await ours()].map((locks) => locks.semaphore('a', { permits: 1 }));
    await first!.acquire();
    await using held = await one!.acquire({ leaseMs: 5_000 });
    const now = Date.now();
    const ahead = jest.spyOn(Date, 'now').mockReturnValue(now + 6_000);
    try {
      expect(await second!.tryAcquire()).toBe(true); // the second of one
      expect(await two!.tryAcquire()).toBeNull();
    } finally {
      ahead.mockRestore();
    }
    expect(held.isHeld()).toBe(true);
  });

  it('theirs asks all the time while it waits, ours waits for a message', async () => {
    const requests = async (): Promise<number> => {
      const counts = (await client().info('commandstats')).matchAll(/cmdstat_(?:set|evalsha):calls=(\d+)/g);
      return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const duringTheWait = async (locked: (work: () => Promise<void>) => Promise<unknown>): Promise<number> => {
      const began = await requests();
      await crowd(1_500, [locked, locked]);
      return (await requests()) - began;
    };
    const theirs = await duringTheWait(async (work) => {
      const mutex = new Mutex(client(), 'a', { refreshInterval: 0 });
      await mutex.acquire();
      await work();
      await mutex.release();
    });
    const [one, two] = [await ours(), await ours()];
    let calls = 0;
    const our = await duringTheWait((work) => (calls++ === 0 ? one : two).using('b', { waitMs: 5_000 }, work));
    expect(our).toBeLessThan(15);
    expect(theirs).toBeGreaterThan(2 * our);
  });

  it('a refresh that Redis refuses ends their process, ours goes on', async () => {
    const program = fileURLToPath(new URL('redis-semaphore/refresh-fails.mjs', import.meta.url));
    const child = spawn(process.execPath, [program], { env: { ...process.env, NODE_OPTIONS: '' } });
    const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect({ out, error }).toEqual({ out: '', error: expect.stringMatching(/READONLY/) });
    await client().replicaof('NO', 'ONE');

    const locks = await ours();
    const told = await toldOfLoss(
      3_000,
      (work) => locks.using('a', { leaseMs: 500 }, ({ signal }) => work(signal)),
      () => client().replicaof('127.0.0.1', 1),
    );
    await client().replicaof('NO', 'ONE');
    expect(told).toEqual(expect.any(Number));
  });
});
