import { inspect } from 'node:util';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import type { RedisConnectionOption } from '../../../lib/redis/connection/connection-options.js';
import { rejection } from '../../support/expect/eventually.js';
import { keysWithTtl, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { itAsAnybody } from './it-as-anybody.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';

const PASSWORD = 'pw-5ecret-of-the-user';

const WAYS: TakeOptions[] = [{}, { mode: 'reentrant' }, { mode: 'read' }, { mode: 'write' }, { permits: 3, count: 2 }];

/** Nothing that is printed of an error may hold a secret: neither a password nor an owner id. */
function expectNoSecret(error: LockUnavailableError, instanceId: string): void {
  const cause = error.cause as Error;
  const printed = [error.message, error.stack, JSON.stringify(error), inspect(error, { depth: 9, showHidden: true })];
  for (const text of [...printed, cause.message, JSON.stringify(cause), inspect(cause, { depth: 9 })]) {
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toContain(`${instanceId}/`);
    expect(text).not.toContain('redis.call');
  }
}

describe('Redis refusing', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** The acquisition is refused at once, and leaves nothing behind that does not expire. */
  const expectRefusal = async (connection: RedisConnectionOption, message: RegExp): Promise<void> => {
    const before = Object.keys(await keysWithTtl(admin()));
    const { locks, instanceId } = await start({ connection, patienceMs: 300 });
    for (const options of WAYS) {
      const error = await rejection<LockUnavailableError>(take(locks, 'a', { ...options, waitMs: 60_000 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(message);
      expectNoSecret(error, instanceId);
    }
    expect(Object.keys(await keysWithTtl(admin())).filter((key) => key !== 'lock:fence')).toEqual(before);
  };

  itAsAnybody('NOAUTH: no password given', async () => {
    await using server = await startRedis({ args: ['--requirepass', PASSWORD] });
    await expectRefusal(server.url, /(NOAUTH|unauthenticated).*Set the password/);
  });

  it('WRONGPASS: the wrong password, in a URL and in options', async () => {
    await using server = await startRedis({ args: ['--requirepass', 'another'] });
    await expectRefusal(server.url.replace('://', `://:${PASSWORD}@`), /WRONGPASS.*Check the user name and password/);
    await expectRefusal({ port: server.port, password: PASSWORD }, /WRONGPASS/);
  });

  itAsAnybody('a database that does not exist: never the locks of database 0 instead', async () => {
    await expectRefusal(`${redis().url}/99`, /DB index is out of range/);
  });

  it('READONLY: a replica', async () => {
    await using replica = await startRedis({ args: ['--replicaof', `127.0.0.1 ${redis().port}`] });
    const { locks, instanceId } = await start({ connection: replica.url });
    const error = await rejection<LockUnavailableError>(locks.acquire('a', { waitMs: 500 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/READONLY.*connect to the primary/);
    expectNoSecret(error, instanceId);
    await locks.shutdown(0);
    expect(await admin().keys('*')).toEqual([]);
  });

  describe.each<[string, (key: string) => Promise<unknown>]>([
    ['string', (key) => admin().set(key, 'mine')],
    ['list', (key) => admin().rpush(key, 'mine')],
    ['hash', (key) => admin().hset(key, 'mine', '1')],
    ['set', (key) => admin().sadd(key, 'mine')],
    ['sorted set', (key) => admin().zadd(key, 1, 'mine')],
  ])('WRONGTYPE: a %s of somebody else stands', (_type, put) => {
    it('where the lock would be', async () => {
      await put('lock:{a}');
      const before = await admin().dumpBuffer('lock:{a}');
      await expectRefusal(redis().url, /WRONGTYPE.*another type/);
      const { locks } = await start();
      await expect(locks.inspect('a')).rejects.toThrow(/WRONGTYPE/);
      expect(await admin().dumpBuffer('lock:{a}')).toEqual(before);
    });

    it.each(WAYS)(
      'where the lock was, when it is released: it was lost, and the key is left alone (%j)',
      async (options) => {
        const { locks, events } = await start();
        const lease = await take(locks, 'a', options);
        await admin().del('lock:{a}');
        await put('lock:{a}');
        const before = await admin().dumpBuffer('lock:{a}');
        expect(await lease.verify()).toBe(false);
        await lease.release();
        expect(events.map(({ type }) => type)).toContain('lost');
        expect(await admin().dumpBuffer('lock:{a}')).toEqual(before);
      },
    );

    it('where the lock was, when its holder renews: it is lost', async () => {
      const { locks } = await start();
      const lease = await locks.acquire('a', { leaseMs: 60_000 });
      await admin().del('lock:{a}');
      await put('lock:{a}');
      const error = await rejection<LeaseLostError>(lease.extend());
      expect(error).toBeInstanceOf(LeaseLostError);
      expect(error.reason).toBe('takenOver');
    });

    it('where the waiters would be', async () => {
      await put('lock:{a}:waiters');
      await expectRefusal(redis().url, /WRONGTYPE/);
    });

    it.each(WAYS)('where the waiters would be, when the lock is released: it is freed (%j)', async (options) => {
      const { locks } = await start();
      const lease = await take(locks, 'a', options);
      await put('lock:{a}:waiters');
      await lease.release();
      expect((await admin().keys('*')).sort()).toEqual(['lock:fence', 'lock:{a}:waiters']);
    });

    it('where the fence would be', async () => {
      await put('lock:fence');
      const { locks } = await start();
      const error = await rejection<LockUnavailableError>(locks.acquire('a'));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(/WRONGTYPE|lock:fence/);
      expect(await admin().keys('*')).toEqual(['lock:fence']);
    });
  });
});
