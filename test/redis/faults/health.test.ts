import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { LockHealth } from '../../../lib/features/fleet/core/health/health-checks.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import {
  commandCounts,
  keysWithTtl,
  type LockInstance,
  resetCounts,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { documentedUser } from '../../support/redis/lock-user.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';

const codesOf = ({ problems }: LockHealth): string[] => problems.map(({ code }) => code);
const WITHIN = { timeoutMs: 5_000 };

describe('locks.health() on one Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const untilUp = ({ locks }: LockInstance) =>
    eventually(async () => expect(await locks.health()).toMatchObject({ status: 'up', problems: [] }));

  it('is up, and leaves nothing behind: no key, no token, no lock in a list', async () => {
    const { locks } = await start();
    const health = await locks.health();
    expect(health).toMatchObject({ status: 'up', topology: 'standalone', servers: { total: 1, needed: 1, up: 1 } });
    expect(health.roundTripMs).toBeGreaterThan(0);
    expect(await keysWithTtl(admin())).toEqual({});
    expect(await locks.operators.list()).toEqual([]);
  });

  it('is down when Redis is, and up when it is back', async () => {
    const instance = await start();
    await redis().kill();
    try {
      await eventually(async () => {
        const health = await instance.locks.health();
        expect([health.status, codesOf(health), health.roundTripMs]).toEqual(['down', ['ECONNREFUSED'], null]);
      });
      // Hosts and ports are for the log.
      expect(JSON.stringify(await instance.locks.health())).not.toMatch(/127\.0\.0\.1|localhost|6379/);
    } finally {
      await redis().restart();
    }
    await untilUp(instance);
  });

  it('is down before the first connection', async () => {
    const { locks } = await start({ connection: 'redis://:s3cret@127.0.0.1:1', patienceMs: 0 });
    const health = await locks.health();
    expect(health).toMatchObject({ status: 'down', servers: { total: 1, needed: 1, up: 0 } });
    expect(JSON.stringify(health)).not.toContain('s3cret');
  });

  it('is down in time while Redis hangs, sends no second probe, and is up when Redis resumes', async () => {
    const instance = await start();
    await untilUp(instance);
    await resetCounts(admin());
    await redis().pause();
    try {
      const from = performance.now();
      const checks = await Promise.all([100, 200, 300].map((timeoutMs) => instance.locks.health({ timeoutMs })));
      expect(performance.now() - from).toBeLessThan(3_000);
      expect(checks.map(codesOf)).toEqual([['TIMEOUT'], ['TIMEOUT'], ['TIMEOUT']]);
      expect(checks.map(({ status }) => status)).toEqual(['down', 'down', 'down']);
      expect(instance.locks.stats().alarms).toBe(0);
    } finally {
      await redis().resume();
    }
    await eventually(async () => expect((await commandCounts(admin())).eval).toBeGreaterThan(0));
    expect((await commandCounts(admin())).eval).toBe(1);
    await untilUp(instance);
    expect(await keysWithTtl(admin())).toEqual({});
  });

  it('is down on a replica, which answers PING', async () => {
    const instance = await start();
    await untilUp(instance);
    const elsewhere = await startRedis();
    try {
      await admin().replicaof('127.0.0.1', elsewhere.port);
      expect(await admin().ping()).toBe('PONG');
      const health = await instance.locks.health(WITHIN);
      expect(health.status).toBe('down');
      expect(codesOf(health)).toContain('READONLY');
    } finally {
      await admin().replicaof('NO', 'ONE');
      await elsewhere.stop();
    }
    await untilUp(instance);
  });

  it('is down when Redis is full, and may not evict', async () => {
    const instance = await start();
    await untilUp(instance);
    await admin().config('SET', 'maxmemory', '1');
    try {
      const health = await instance.locks.health(WITHIN);
      expect([health.status, codesOf(health)]).toEqual(['down', ['OOM']]);
    } finally {
      await admin().config('SET', 'maxmemory', '0');
    }
    await untilUp(instance);
  });

  describe('when Redis may remove keys', () => {
    const configure = (policy: string, maxmemory: string) =>
      admin().config('SET', 'maxmemory-policy', policy, 'maxmemory', maxmemory);
    afterEach(() => configure('noeviction', '0'));

    it.each([
      ['allkeys-lru', '100mb', ['EVICTION']],
      ['volatile-ttl', '100mb', ['EVICTION']],
      ['noeviction', '100mb', []],
      ['allkeys-lru', '0', []],
    ])('with %s and maxmemory %s it has the problems that follow', async (policy, maxmemory, codes) => {
      const { locks } = await start();
      await configure(policy, maxmemory);
      const health = await locks.health(WITHIN);
      expect([health.status, codesOf(health)]).toEqual([codes.length > 0 ? 'degraded' : 'up', codes]);
    });

    it('says when keys were removed since it looked first', async () => {
      const { locks } = await start();
      await configure('allkeys-lru', '100mb');
      const message = async () => (await locks.health(WITHIN)).problems.map((problem) => problem.message);
      expect(await message()).toEqual([
        expect.stringMatching(/^Redis removes keys when its memory is full \(maxmemory-policy allkeys-lru\): .*two/),
      ]);
      const full = async (): Promise<void> => {
        await admin().set(`full:${randomBytes(8).toString('hex')}`, Buffer.alloc(200_000));
        const evicted = /evicted_keys:(\d+)/.exec(await admin().info('stats'))?.[1];
        expect(Number(evicted)).toBeGreaterThan(0);
      };
      const used = Number(/used_memory:(\d+)/.exec(await admin().info('memory'))?.[1]);
      await configure('allkeys-lru', String(used + 1_000_000));
      await eventually(full);
      expect(await message()).toEqual([expect.stringMatching(/^Redis is full and removes keys/)]);
      await admin().flushall();
    });

    it('is up for a user who may not ask', async () => {
      await configure('allkeys-lru', '100mb');
      const { name, password, rules } = documentedUser();
      await admin().call('ACL', 'SETUSER', name, 'reset', ...rules, '-info');
      const { locks } = await start({ connection: redis().url.replace('://', `://${name}:${password}@`) });
      expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] });
      await admin().call('ACL', 'SETUSER', name, '+info');
      expect(codesOf(await locks.health(WITHIN))).toEqual(['EVICTION']);
    });
  });

  describe.each<[string, () => Promise<unknown>]>([
    ['a text', () => admin().set('lock:fence', 'xxxx')],
    ['an empty text', () => admin().set('lock:fence', '')],
    ['a fraction', () => admin().set('lock:fence', '1.5')],
    ['a number with a zero before it', () => admin().set('lock:fence', '007')],
    ['a number that no token can have', () => admin().set('lock:fence', '9223372036854775806')],
    ['the largest number of Redis', () => admin().set('lock:fence', '9223372036854775807')],
    ['a number beyond it', () => admin().set('lock:fence', '9223372036854775808')],
    ['a number whose token is beyond the safe ones', () => admin().set('lock:fence', String(2 ** 48))],
    ['a list', () => admin().rpush('lock:fence', 'x')],
    ['a hash', () => admin().hset('lock:fence', 'x', '1')],
    ['a sorted set', () => admin().zadd('lock:fence', 1, 'x')],
  ])('with %s of a neighbour where the fence would be', (_what, put) => {
    it('is down as every acquire fails, names the key, and is up once the key is gone', async () => {
      const instance = await start();
      await untilUp(instance);
      await put();
      const error = await rejection<LockUnavailableError>(instance.locks.acquire('stock', { waitMs: 0 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toContain('WRONGTYPE');
      const { status, problems } = await instance.locks.health(WITHIN);
      expect([status, problems.map(({ code }) => code)]).toEqual(['down', ['WRONGTYPE']]);
      expect(problems[0]!.message).toContain('"lock:fence"');
      expect(problems[0]!.message).toMatch(/Delete it|keyPrefix/);
      expect(JSON.stringify(problems)).not.toContain('stock');
      await admin().del('lock:fence');
      expect(await instance.locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] });
      await (await instance.locks.acquire('stock', { waitMs: 0 })).release();
    });
  });

  it.each(['0', '-1', '-9223372036854775808', String(2 ** 48 - 3)])('is up where the fence is %s', async (tick) => {
    const instance = await start();
    await untilUp(instance);
    await admin().set('lock:fence', tick);
    expect(await instance.locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] });
    // No token was minted for it.
    expect(await admin().get('lock:fence')).toBe(tick);
    const lease = await instance.locks.acquire('stock', { waitMs: 0 });
    expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
    await lease.release();
  });

  it('is down while Redis loads its data', async () => {
    // Before version 7, DEBUG is allowed, and this option is not known.
    const isOld = Number(/redis_version:(\d+)/.exec(await admin().info('server'))?.[1]) < 7;
    const own = await startRedis({ args: isOld ? [] : ['--enable-debug-command', 'yes'] });
    const client = new Redis(own.url, { enableReadyCheck: false, retryStrategy: null });
    try {
      const { locks } = await start({ connection: own.url });
      expect(await locks.health(WITHIN)).toMatchObject({ status: 'up' });
      // Each of the keys takes this long to load, in microseconds. The server is stopped before it has loaded all.
      await client.config('SET', 'key-load-delay', '500000');
      await client.config('SET', 'loading-process-events-interval-bytes', '1024');
      // Random, because compressed values would be too short for the server to serve its clients while loading.
      for (let i = 0; i < 60; i++) await client.set(`filler:${i}`, randomBytes(4_096));
      client.call('DEBUG', 'RELOAD').catch(() => undefined);
      await eventually(async () => {
        const health = await locks.health(WITHIN);
        expect([health.status, codesOf(health)]).toEqual(['down', ['LOADING']]);
      });
    } finally {
      client.disconnect();
      await own.stop();
    }
  });

  it('is down during a restart quarantine', async () => {
    const own = await startRedis();
    try {
      const { locks } = await start({ connection: own.url, restartQuarantineMs: 60_000, defaults: { leaseMs: 1_000 } });
      await eventually(async () => {
        const health = await locks.health(WITHIN);
        expect([health.status, codesOf(health)]).toEqual(['down', ['RESTART_QUARANTINE']]);
      });
    } finally {
      await own.stop();
    }
  });

  it('is down while the connection for messages is not subscribed', async () => {
    const instance = await start();
    await untilUp(instance);
    // It cannot come back for now.
    await admin().config('SET', 'maxclients', '1');
    try {
      await admin().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await eventually(async () => {
        const health = await instance.locks.health();
        expect([health.status, codesOf(health)]).toEqual(['down', ['NO_INBOX']]);
      });
    } finally {
      await admin().config('SET', 'maxclients', '10000');
    }
    await untilUp(instance);
  });

  it('is down once the service is closed', async () => {
    const { locks } = await start();
    await locks.shutdown(0);
    const health = await locks.health();
    expect([health.status, codesOf(health)]).toEqual(['down', ['CLOSED']]);
  });

  describe('with the rights of an ACL user', () => {
    const { password, rules } = documentedUser();
    const allow = async (keep: (rule: string) => boolean): Promise<void> => {
      const kept = rules.filter((rule) => keep(rule));
      await admin().call('ACL', 'SETUSER', 'health', 'reset', 'on', ...kept);
    };
    const startAsUser = () => start({ connection: redis().url.replace('://', `://health:${password}@`) });
    afterEach(() => admin().call('ACL', 'DELUSER', 'health'));

    it('is up for the documented user, and tries nothing else', async () => {
      await allow(() => true);
      await admin().call('ACL', 'LOG', 'RESET');
      const { locks } = await startAsUser();
      expect(await locks.health(WITHIN)).toMatchObject({ status: 'up', problems: [] });
      expect(await admin().call('ACL', 'LOG')).toEqual([]);
    });

    it.each(['+set', '+zadd', '~lock:*'])('is down without %s, and says so', async (right) => {
      await allow((rule) => rule !== right);
      const { locks } = await startAsUser();
      const { status, problems } = await locks.health(WITHIN);
      expect([status, problems.map(({ code }) => code)]).toEqual(['down', ['NOPERM']]);
      expect(problems[0]!.message).toContain(right.startsWith('~') ? 'the keys' : right);
    });

    it('is degraded without +publish: waiters are notified late', async () => {
      await allow((rule) => rule !== '+publish');
      const { locks } = await startAsUser();
      expect(await locks.health(WITHIN)).toMatchObject({ status: 'degraded', problems: [{ code: 'NOPERM' }] });
    });

    it.each(['+subscribe', '&lock:*'])('is degraded without %s: it learns of grants by asking', async (right) => {
      await allow((rule) => rule !== right);
      const { locks } = await startAsUser();
      const health = await locks.health(WITHIN);
      expect(health.status).toBe('degraded');
      expect(codesOf(health)).toContain('INBOX_REFUSED');
      await (await locks.acquire('stock')).release();
    });
  });
});
