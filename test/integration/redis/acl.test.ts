import { inspect } from 'node:util';
import { LockUnavailableError } from '../../../lib/core/errors.js';
import { eventually, rejection } from '../../support/eventually.js';
import { keysWithTtl, useAdmin, useInstances } from '../../support/lock-instances.js';
import { useRedis } from '../../support/redis-server.js';

const PASSWORD = 'pw-5ecret-of-the-user';

/** Everything the library needs of an ACL user. */
const ENOUGH = ['~lock:*', '&lock:*', '-@all', '+@connection', '+evalsha', '+eval', '+subscribe', '+publish', '+time'];
const IN_SCRIPTS = 'exists get set incr del pexpire pttl hget hset hmget hdel hlen hgetall llen'.split(' ');

describe('an ACL user', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const connectAs = async (...rules: string[]) => {
    await admin().call('ACL', 'SETUSER', 'app', 'reset', 'on', `>${PASSWORD}`, ...rules);
    return start({ connection: redis().url.replace('://', `://app:${PASSWORD}@`), patienceMs: 500 });
  };
  const everything = [...ENOUGH, ...IN_SCRIPTS.map((command) => `+${command}`)];
  const expectNoperm = (error: LockUnavailableError): void => {
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/^Redis could not acquire "a": (NOPERM|ERR The user).*The ACL user needs/);
    for (const text of [error.message, JSON.stringify(error), inspect(error, { depth: 9 })]) {
      expect(text).not.toContain(PASSWORD);
    }
  };

  it('with the documented rights can do everything', async () => {
    const { locks, instanceId } = await connectAs(...everything);
    const other = await start();
    for (const mode of ['exclusive', 'reentrant'] as const) {
      const lease = await locks.acquire('a', { mode });
      await lease.extend();
      expect(await lease.verify()).toBe(true);
      expect((await locks.inspect('a')).holders).toHaveLength(1);
      await lease.release();
    }
    const lease = await other.locks.acquire('a', { leaseMs: 60_000 });
    const waiting = locks.acquire('a', { waitMs: 60_000 });
    await eventually(async () => expect((await other.locks.inspect('a')).waiters).toEqual([instanceId]));
    await lease.release();
    await (await waiting).release();
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });

  it.each([
    ['EVALSHA', ['-evalsha']],
    ['EVAL, on a server that does not know the scripts', ['-eval']],
    ['the keys', ['resetkeys', '~other:*']],
    ['SET', ['-set']],
    ['TIME', ['-time']],
  ])('without %s is told at once, and nothing is left behind', async (_what, rules) => {
    await admin().script('FLUSH');
    const { locks } = await connectAs(...everything, ...rules);
    expectNoperm(await rejection(locks.acquire('a', { waitMs: 60_000 })));
    expect((await admin().keys('*')).filter((key) => key !== 'lock:fence')).toEqual([]);
  });

  it.each(IN_SCRIPTS.concat('time', 'publish'))('without %s leaves nothing that does not expire', async (command) => {
    const { locks } = await connectAs(...everything, `-${command}`);
    const dead = (await start()).store;
    for (const mode of ['exclusive', 'reentrant'] as const) {
      // As a holder, as a waiter, and as one who gets a lock that others wait for.
      await dead.acquire({ resource: 'held', owner: 'dead/x', mode }, 60_000);
      await locks.acquire('held', { waitMs: 20 }).catch(() => undefined);
      for (const waitMs of [100, 0]) {
        const lease = await locks.acquire('a', { mode, leaseMs: 5_000, waitMs }).catch(() => undefined);
        await lease?.release().catch(() => undefined);
      }
    }
    await locks.shutdown(0);
    const { 'lock:fence': _fence, ...others } = await keysWithTtl(admin());
    for (const ttl of Object.values(others)) expect(ttl).toBeGreaterThan(0);
  });

  it.each([
    ['the waiter', 'waiter'],
    ['the holder', 'holder'],
  ])('without the channel, %s makes do with heartbeats: no error, and the lock is handed on', async (_who, role) => {
    const restricted = await connectAs(...everything, 'resetchannels');
    const free = await start();
    const [holder, waiter] = role === 'holder' ? [restricted, free] : [free, restricted];
    const lease = await holder.locks.acquire('a', { leaseMs: 60_000 });
    const waiting = waiter.locks.acquire('a', { waitMs: 20_000 });
    await eventually(async () => expect((await free.locks.inspect('a')).waiters).toEqual([waiter.instanceId]));
    await lease.release();
    const next = await waiting;
    expect(await next.verify()).toBe(true);
    await next.release();
    await restricted.locks.shutdown(0);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });
});
