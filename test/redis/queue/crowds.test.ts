import { randomUUID } from 'node:crypto';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { RELEASE } from '../../../lib/redis/script/scripts.js';
import { eventually } from '../../support/expect/eventually.js';
import { GrantLog } from '../../contract/grant-log.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { lockConnection } from '../../support/redis/lock-user.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { ScriptLengths } from './script-lengths.js';

/** So many commands a script may call at most, and so many arguments each of them may have: well below a millisecond. */
const BOUND = { commands: 400, arguments: 1_000 };
const LONG_MS = 60_000;
const QUEUEING = { sentAt: 1, maxWaiters: 1_000_000 };

function newOwner({ clientId }: RedisLockStore, mode: LockOwner['mode'] = 'exclusive'): LockOwner {
  return { resource: 'x', id: `${clientId}/${randomUUID()}`, mode };
}

/** Opens stores that no client listens on, and closes them after each test. */
function useStores(url: () => string): () => Promise<RedisLockStore> {
  const opened: RedisLockStore[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((store) => store.close())));
  return async () => {
    const instanceId = `store-${randomUUID().slice(0, 8)}`;
    const connection = lockConnection(url());
    const store = new RedisLockStore({ connection, keyPrefix: 'lock', instanceId, leaseMs: LONG_MS });
    opened.push(store);
    expect(await store.start(10_000)).toBe(true);
    return store;
  };
}

describe('no script takes longer', () => {
  const redis = useRedis();
  const open = useStores(() => redis().url);
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const inBatches = async (count: number, run: (i: number) => Promise<unknown>): Promise<void> => {
    for (let i = 0; i < count; i += 1_000) {
      await Promise.all(Array.from({ length: Math.min(1_000, count - i) }, (_, j) => run(i + j)));
    }
  };
  const queue = (store: RedisLockStore, waiter: LockOwner, leaseMs = LONG_MS) =>
    store.acquire(waiter, leaseMs, QUEUEING);
  /** Waiters in the queue without a listener. */
  const deaf = (store: RedisLockStore, count: number) =>
    inBatches(count, (i) => queue(store, { resource: 'x', id: `dead/${i}/${i}`, mode: 'exclusive' }));
  const during = async (work: () => Promise<unknown>): Promise<ScriptLengths> => {
    const lengths = await ScriptLengths.during(admin(), work);
    expect(lengths.longest).toBeGreaterThan(0);
    expect(lengths.longest).toBeLessThan(BOUND.commands);
    expect(lengths.mostArguments).toBeLessThan(BOUND.arguments);
    return lengths;
  };

  it('for all that have given up on a lock that is held for long', async () => {
    const store = await open();
    const holder = newOwner(store);
    await store.acquire(holder, LONG_MS);
    const first = newOwner(store);
    await queue(store, first);
    // Ten minutes in which a caller gives up every 200 ms, before the next one joins.
    let next = newOwner(store);
    await queue(store, next);
    const lengths = await during(async () => {
      for (let given = 0; given < 3_000; given += 1_000) {
        const hasty = [next, ...Array.from({ length: 999 }, () => newOwner(store))];
        next = newOwner(store);
        await Promise.all([...hasty.slice(1), next].map((waiter) => queue(store, waiter)));
        await Promise.all(hasty.map((waiter) => store.release(waiter)));
      }
      await store.release(first);
      await store.release(holder);
    });
    expect(lengths.longest).toBeLessThan(20);
    expect(await store.verify(next)).toBe(true);
    await store.release(next);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it('for waiters without a subscriber: they are skipped, and the next live one is granted', async () => {
    const [store, { locks }] = [await open(), await start()];
    const holder = newOwner(store);
    await store.acquire(holder, LONG_MS);
    await deaf(store, 1_500);
    const next = locks.acquire('x', { leaseMs: LONG_MS, waitMs: LONG_MS });
    await eventually(async () => expect(await admin().zcard('lock:{x}:waiters')).toBe(3 * 1_501));
    await during(async () => {
      await store.release(holder);
      await next;
    });
    await (await next).release();
    await eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));
  });

  it('for a call that does not wait: it skips all of them, and gets the free lock', async () => {
    const [store, { locks }] = [await open(), await start()];
    const holder = newOwner(store);
    await store.acquire(holder, LONG_MS);
    await deaf(store, 1_000);
    // As when the holder and all who wait for it die together.
    await admin().del('lock:{x}');
    await during(async () => {
      const lease = await locks.tryAcquire('x', { leaseMs: LONG_MS });
      expect(lease).not.toBeNull();
      await lease!.release();
    });
    await eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));
  });

  it('for readers that are granted together: all of them are, one after another', async () => {
    const store = await open();
    const grants = new GrantLog(store);
    const writer = newOwner(store, 'write');
    await store.acquire(writer, LONG_MS);
    const readers = Array.from({ length: 1_000 }, () => newOwner(store, 'read'));
    await inBatches(readers.length, (i) => queue(store, readers[i]!));
    await during(async () => {
      await store.release(writer);
      for (const { id: owner } of readers) expect((await grants.next()).owner).toBe(owner);
    });
    expect(grants.size).toBe(0);
    expect((await store.inspect('x')).holders).toHaveLength(1_000);
  });

  it.each<[string, (store: RedisLockStore, holder: LockOwner) => Promise<unknown>]>([
    ['downgrades', (store, holder) => store.downgrade(holder, LONG_MS)],
    [
      'is forced to release',
      async (store) => {
        const { holders } = await store.inspect('x');
        return store.forceRelease('x', holders[0]!.fencingToken);
      },
    ],
  ])('for many readers when a writer %s', async (_what, end) => {
    const store = await open();
    const grants = new GrantLog(store);
    const writer = newOwner(store, 'write');
    await store.acquire(writer, LONG_MS);
    await inBatches(300, () => queue(store, newOwner(store, 'read')));
    await during(async () => {
      expect(await end(store, writer)).toBe(true);
      for (let i = 0; i < 300; i++) await grants.next();
    });
  });

  it('for a releaser that dies when its script has stopped: the next heartbeat continues', async () => {
    const [store, { locks }] = [await open(), await start()];
    const holder = newOwner(store);
    await store.acquire(holder, LONG_MS);
    await deaf(store, 2_000);
    const next = locks.acquire('x', { leaseMs: LONG_MS, waitMs: LONG_MS });
    await eventually(async () => expect(await admin().zcard('lock:{x}:waiters')).toBe(3 * 2_001));
    const lengths = await during(async () => {
      // Its script, and nothing after it.
      const keys = [store.keys.lock('x'), store.keys.waiters('x'), store.keys.fence('')];
      expect(await admin().eval(RELEASE.lua, keys.length, ...keys, holder.id)).toBe(3);
      expect(await admin().exists('lock:{x}')).toBe(0);
      await next;
    });
    // Each command skipped some of the dead; no waiter had to ask for each of them.
    expect(lengths.commands.length).toBeLessThan(200);
    await (await next).release();
  });
});

describe('somebody who listens to all channels', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const open = useStores(() => redis().url);

  it('does not make the dead look alive: they are passed over at once', async () => {
    const spy = admin().duplicate();
    try {
      await spy.psubscribe('*');
      const [holder, dead, next] = [await open(), await open(), await open()];
      const [owner, lost, living] = [holder, dead, next].map((store) => newOwner(store)) as [
        LockOwner,
        LockOwner,
        LockOwner,
      ];
      await holder.acquire(owner, LONG_MS);
      await dead.acquire(lost, LONG_MS, QUEUEING);
      await dead.close();
      const channel = dead.keys.inbox(dead.clientId);
      await eventually(async () => expect(await admin().pubsub('NUMSUB', channel)).toEqual([channel, 0]));
      const grants = new GrantLog(next);
      await next.acquire(living, LONG_MS, QUEUEING);
      await holder.release(owner);
      expect(await next.verify(living)).toBe(true);
      expect((await grants.next()).owner).toBe(living.id);
    } finally {
      spy.disconnect();
    }
  });
});
