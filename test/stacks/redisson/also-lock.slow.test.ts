import { Redis } from 'ioredis';
import { LockBusyError } from '../../../lib/core/api/errors.js';
import type { LockEvent } from '../../../lib/core/events/events.js';
import type { LeaseLostError } from '../../../lib/core/api/lease-errors.js';
import { LockClient } from '../../../lib/core/lock-client.js';
import { AlsoLocks } from '../../../lib/migration/both/also-locks.js';
import { redisson } from '../../../lib/migration/redisson.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { eventually, rejection, untilAborted } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { RedissonService, type RedissonThread } from '../../support/redisson/redisson-service.js';

/** Longer than any of these tests. */
const LONG_MS = 600_000;
const PASSWORD = 'a-secret-of-the-java-side';

describe('alsoLock with redisson(), beside the actor that behaves as RedissonLock', () => {
  const redis = useRedis();
  let admin: Redis;
  let java: RedissonService;
  let thread: RedissonThread;
  let locks: LockClient;
  let events: LockEvent[];

  beforeEach(async () => {
    admin = new Redis(redis().url);
    await admin.flushall();
    await admin.acl('SETUSER', 'java', 'on', `>${PASSWORD}`, 'allkeys', 'allchannels', 'allcommands');
    java = RedissonService.connect(redis().port, { watchdogMs: LONG_MS });
    thread = java.thread(1);
    const store = new RedisLockStore({
      connection: redis().url,
      keyPrefix: 'lock',
      instanceId: 'test',
      leaseMs: LONG_MS,
    });
    const client = { port: redis().port, username: 'java', password: PASSWORD };
    const alsoLock = redisson({ client, key: (resource) => (resource.startsWith('own:') ? undefined : resource) });
    locks = new LockClient({
      store,
      defaults: { leaseMs: LONG_MS, waitMs: 30_000, alsoLock },
      secondLocks: (runtime) => new AlsoLocks(runtime),
    });
    events = [];
    locks.observers.add((event) => events.push(event));
    await store.start(5_000);
  });

  afterEach(async () => {
    java.close();
    await locks.shutdown(0);
    admin.disconnect();
  });

  it('a thread that has entered twice and unlocks once still excludes us, and the error names its lock', async () => {
    await thread.lock('stock');
    await thread.lock('stock');
    await thread.unlock('stock');
    const error = await rejection<LockBusyError>(locks.acquire('stock', { waitMs: 0 }));
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.foreignHolder).toEqual({ library: 'redisson', key: 'stock', ttlMs: expect.any(Number) as number });
    expect(await locks.tryAcquire('stock')).toBeNull();
    await thread.unlock('stock');
    await (await locks.acquire('stock', { waitMs: 0 })).release();
    expect(await thread.tryLock('stock')).toBe(true);
  });

  it('our re-entry stays here: a thread waits for the last release, and sees one thread that has locked once', async () => {
    const reentrant = { mode: 'reentrant' } as const;
    await locks.using('stock', reentrant, async () => {
      await locks.using('stock', reentrant, async () => {
        expect(Object.values(await admin.hgetall('stock'))).toEqual(['1']);
      });
      expect(await thread.tryLock('stock')).toBe(false);
    });
    expect(await thread.tryLock('stock')).toBe(true);
  });

  it('a resource without a lock of Java takes ours alone', async () => {
    const lease = await locks.acquire('own:stock');
    expect(await admin.exists('own:stock')).toBe(0);
    await lease.release();
  });

  it('is renewed by the watchdog: a thread is kept out for longer than the lease', async () => {
    const lease = await locks.acquire('stock', { leaseMs: 3_000 });
    for (let renewals = 0; renewals < 4; renewals++) {
      await eventually(async () => expect(await admin.pttl('stock')).toBeLessThan(2_300));
      await eventually(async () => expect(await admin.pttl('stock')).toBeGreaterThan(2_300));
      expect(await thread.tryLock('stock')).toBe(false);
    }
    await lease.release();
    expect(await thread.tryLock('stock')).toBe(true);
  });

  it('a forced unlock of Java ends our lease at the next renewal, and our release leaves the new holder alone', async () => {
    const lease = await locks.acquire('stock', { leaseMs: 3_000 });
    expect(await thread.forceUnlock('stock')).toBe(true);
    await thread.lock('stock');
    await untilAborted(lease.signal);
    expect((lease.signal.reason as LeaseLostError).reason).toBe('foreignLost');
    await lease[Symbol.asyncDispose]();
    expect(await thread.holdCount('stock')).toBe(1);
    expect(await locks.tryAcquire('stock')).toBeNull();
  });

  it('a call that gives up leaves nothing behind', async () => {
    await thread.lock('stock');
    // Long enough that both Redis connections answer on a busy machine: silence would be another error.
    const error = await rejection(locks.acquire('stock', { waitMs: 2_000 }));
    expect(error.name).toBe('LockTimeoutError');
    await thread.unlock('stock');
    expect(await thread.tryLock('stock')).toBe(true);
    await eventually(async () => {
      const channels = (await admin.pubsub('CHANNELS', 'redisson_lock__channel:*')) as string[];
      expect(channels).toEqual([]);
    });
  });

  it('of several resources, all are taken there or none', async () => {
    await thread.lock('b');
    expect(await locks.tryAcquire(['a', 'b'])).toBeNull();
    await eventually(async () => expect(await admin.exists('a')).toBe(0));
    await thread.unlock('b');
    const lease = await locks.acquire(['a', 'b']);
    expect(await thread.tryLock('a')).toBe(false);
    expect(await thread.tryLock('b')).toBe(false);
    await lease.release();
    expect(await thread.tryLock('a')).toBe(true);
  });

  it('no error and no event has the password, or the field by which a lease is known', async () => {
    const lease = await locks.acquire('stock', { leaseMs: 1_500 });
    const [field] = (await admin.hkeys('stock')) as [string];
    await admin.acl('SETUSER', 'java', 'off');
    await admin.call('CLIENT', 'KILL', 'USER', 'java');
    await untilAborted(lease.signal);
    const told = [lease.signal.reason, await rejection(lease.release()).catch(() => ''), await lost(), ...events];
    const text = told.map((each) => inspectDeeply(each)).join('\n');
    expect(text).toContain('redisson');
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toContain(field.split(':')[0]);
  });

  function lost(): Promise<Error> {
    return rejection(locks.acquire('stock', { waitMs: 300 }));
  }
});

function inspectDeeply(value: unknown): string {
  if (!(value instanceof Error))
    return JSON.stringify(value, (_key, each: unknown) => (each instanceof Error ? inspectDeeply(each) : each));
  return `${value.stack} ${JSON.stringify(Object.entries(value))} ${value.cause ? inspectDeeply(value.cause) : ''}`;
}
