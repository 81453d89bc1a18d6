import { inspect } from 'node:util';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { LockMode } from '../../../lib/kernel/api/lock-options.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { instancesOf } from '../../support/redis/instances-of.js';
import { keysWithTtl, type LockInstanceOptions, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';

const PASSWORD = 'pw-5ecret-of-the-user';

/** Everything the library needs of an ACL user. */
const ENOUGH = ['~lock:*', '&lock:*', '-@all', '+@connection', '+evalsha', '+eval', '+subscribe', '+publish', '+time'];
const IN_SCRIPTS = [
  ...'exists get set incrby del pexpire pttl hget hset hmget hdel hlen hgetall hscan hrandfield'.split(' '),
  ...'zadd zcard zcount zrange zrem zscore llen pubsub|numsub'.split(' '),
];
/** Additional rights for `locks.list()`. */
const TO_LIST = '+scan';
/** Additional rights for the options against data loss. */
const TO_WAIT = '+wait';
const TO_LOOK = '+info';
const DURABLY = { durability: { replicas: 1, timeoutMs: 50 } };
const QUARANTINED = { restartQuarantineMs: 600_000 };

/** Every way to take a lock. */
const WAYS: [string, TakeOptions][] = [
  ['exclusive', {}],
  ['reentrant', { mode: 'reentrant' }],
  ['read', { mode: 'read' }],
  ['write', { mode: 'write' }],
  ['semaphore', { permits: 3, count: 2 }],
];

describe('an ACL user', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const connectAs = (...rules: string[]) => connectFor({}, ...rules);
  const connectFor = async (options: LockInstanceOptions, ...rules: string[]) => {
    await admin().call('ACL', 'SETUSER', 'app', 'reset', 'on', `>${PASSWORD}`, ...rules);
    return start({ ...options, connection: redis().url.replace('://', `://app:${PASSWORD}@`), patienceMs: 500 });
  };
  const everything = [...ENOUGH, TO_LIST, ...IN_SCRIPTS.map((command) => `+${command}`)];
  const expectNoperm = (
    error: LockUnavailableError,
    advice = /The ACL user needs|Add the rule \+eval(sha)? to the ACL user$/,
  ): void => {
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(/^Redis could not acquire "a": (NOPERM|ERR The user)/);
    expect(error.message).toMatch(advice);
    for (const text of [error.message, JSON.stringify(error), inspect(error, { depth: 9 })]) {
      expect(text).not.toContain(PASSWORD);
    }
  };

  it.each([
    ['WAIT', 'durability', DURABLY, TO_WAIT, 'only 0 of 1 replicas'],
    ['INFO', 'restartQuarantineMs', QUARANTINED, TO_LOOK, 'has restarted and may have forgotten leases'],
  ])(
    'needs %s for %s: without it is told at once, and nothing is granted',
    async (_what, name, options, rule, said) => {
      const without = await connectFor(options, ...everything, rule.replace('+', '-'));
      for (const waitMs of [60_000, 0]) {
        const error = await rejection<LockUnavailableError>(without.locks.acquire('a', { waitMs }));
        expectNoperm(error, new RegExp(`${name} needs the command .*give the ACL user \\${rule}`));
      }
      expect(await admin().keys('*')).toEqual([]);
      const { locks } = await connectFor(options, ...everything, rule);
      expect((await rejection(locks.acquire('a', { waitMs: 0 }))).message).toContain(said);
      // The one that was there before may do it now, too, once the first has released what it got.
      await eventually(async () =>
        expect((await rejection(without.locks.acquire('a', { waitMs: 0 }))).message).toContain(said),
      );
    },
  );

  it.each(IN_SCRIPTS.concat('time', 'publish'))('without %s leaves nothing that does not expire', async (command) => {
    const { locks } = await connectAs(...everything, `-${command}`);
    const dead = (await start()).store;
    for (const [mode, options] of WAYS) {
      const permits = mode === 'semaphore' ? { count: 2, total: 3, isResized: false } : undefined;
      const name = `${mode}-held`;
      // As a holder, as a waiter, and as one who gets a lock that others wait for.
      await dead.acquire({ resource: name, id: 'dead/x', mode: mode as LockMode, permits }, 60_000);
      await take(locks, name, { ...options, waitMs: 20 }).catch(() => undefined);
      for (const waitMs of [60, 0]) {
        const lease = await take(locks, 'a', { ...options, leaseMs: 5_000, waitMs }).catch(() => undefined);
        if (mode === 'write') await lease?.downgrade().catch(() => undefined);
        await lease?.release().catch(() => undefined);
      }
    }
    const owners = ['read', 'write', 'read', 'semaphore', 'semaphore'] as const;
    for (const [place, mode] of owners.entries()) {
      const permits = mode === 'semaphore' ? { count: 1, total: 2, isResized: false } : undefined;
      const resource = permits ? 'permits' : 'shared';
      await dead.acquire({ resource, id: `dead/${place}`, mode, permits }, 5_000, { sentAt: 1, maxWaiters: 9 });
    }
    for (const mode of ['read', 'write'] as const) {
      const lease = await locks.acquire('b', { mode, leaseMs: 5_000, waitMs: 100 }).catch(() => undefined);
      if (mode === 'write') await lease?.downgrade().catch(() => undefined);
      await lease?.release().catch(() => undefined);
      await locks.acquire('shared', { mode, waitMs: 20 }).catch(() => undefined);
    }
    const semaphore = locks.semaphore('permits', { permits: 2 });
    await semaphore.resize(3).catch(() => undefined);
    const permit = await semaphore.acquire({ leaseMs: 5_000, waitMs: 100 }).catch(() => undefined);
    await permit?.release().catch(() => undefined);
    await locks.shutdown(0);
    const { 'lock:fence': _fence, ...others } = await keysWithTtl(admin());
    for (const ttl of Object.values(others)) expect(ttl).toBeGreaterThan(0);
  });

  it.each([
    ['the waiter', 'waiter'],
    ['the holder', 'holder'],
  ])(
    'without the channel, %s makes do with heartbeats: no error, and the next waiter gets the lock',
    async (_who, role) => {
      const restricted = await connectAs(...everything, 'resetchannels');
      const free = await start();
      const [holder, waiter] = role === 'holder' ? [restricted, free] : [free, restricted];
      const lease = await holder.locks.acquire('a', { leaseMs: 60_000 });
      const waiting = waiter.locks.acquire('a', { waitMs: 20_000 });
      await eventually(async () =>
        expect(instancesOf((await free.locks.inspect('a')).waiters)).toEqual([waiter.instanceId]),
      );
      await lease.release();
      const next = await waiting;
      expect(await next.verify()).toBe(true);
      await next.release();
      await restricted.locks.shutdown(0);
      // The last report of the restricted one expires by itself.
      expect((await admin().keys('*')).filter((key) => key !== 'lock:roll:unasked')).toEqual(['lock:fence']);
    },
  );
});
