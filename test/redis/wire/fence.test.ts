import { inspect } from 'node:util';
import { jest } from '@jest/globals';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { InvalidLockOptionsError, LockUnavailableError } from '../../../lib/core/api/errors.js';
import { FencedCommandError, StaleFencingTokenError } from '../../../lib/core/api/lease-errors.js';
import { fence } from '../../../lib/fence.js';
import { MAX_COMMAND_PARTS, NOT_IN_SCRIPTS } from '../../../lib/redis/fence/fenced-commands.js';
import { GUARD } from '../../../lib/redis/script/scripts.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { commandCounts, keysWithTtl, resetCounts, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const KEY = 'fence:a';

describe('fence.guard', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const clients: (Redis | Cluster)[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.disconnect()));
  const connect = (options: RedisOptions = {}): Redis => {
    const client = new Redis(redis().url, options);
    clients.push(client);
    return client;
  };
  const append = (token: number, text: string | number = token) =>
    fence.guard(admin(), { key: KEY, token }, [['RPUSH', 'log', text]]);
  const log = () => admin().lrange('log', 0, -1);

  it('lets a growing token in, the same one again, and refuses an older one, which changes nothing', async () => {
    expect(await append(64)).toEqual([1]);
    expect(await append(96)).toEqual([2]);
    expect(await append(96)).toEqual([3]);
    const error = await rejection(append(95));
    expect(error).toBeInstanceOf(StaleFencingTokenError);
    expect(error).toMatchObject({ token: 95, newestToken: 96, resource: KEY });
    expect(await log()).toEqual(['64', '96', '96']);
    expect(await admin().get(KEY)).toBe('96');
  });

  it('compares tokens as numbers, up to the largest that is exact', async () => {
    await append(9);
    await append(10);
    await append(Number.MAX_SAFE_INTEGER - 1);
    await append(Number.MAX_SAFE_INTEGER);
    await expect(append(Number.MAX_SAFE_INTEGER - 1)).rejects.toThrow(StaleFencingTokenError);
    expect(await admin().get(KEY)).toBe('9007199254740991');
  });

  it('gives the replies of all commands, and takes keys and values as they are', async () => {
    const binary = Buffer.from([0, 255, 10, 13]);
    const replies = await fence.guard(admin(), { key: KEY, token: 1 }, [
      ['SET', 'a', binary],
      ['GET', 'missing'],
      ['hset', 'h', 'x', 1, 'y', ''],
      ['HGETALL', 'h'],
      ['MGET', 'missing', 'missing'],
      ['INCRBYFLOAT', 'f', 1.5],
      ['SET', 'sp ace', 'k v'],
    ]);
    expect(replies).toEqual(['OK', null, 2, ['x', '1', 'y', ''], [null, null], '1.5', 'OK']);
    expect(await admin().getBuffer('a')).toEqual(binary);
    expect(await admin().get('sp ace')).toBe('k v');
  });

  it('takes commands as long as it says, and many of them', async () => {
    const values = Array.from({ length: MAX_COMMAND_PARTS - 2 }, (_, i) => i);
    const [length] = await fence.guard(admin(), { key: KEY, token: 1 }, [['RPUSH', 'log', ...values]]);
    expect(length).toBe(MAX_COMMAND_PARTS - 2);
    const many = Array.from({ length: 20_000 }, (_, i) => ['SET', `key-${i}`, i] as const);
    expect(await fence.guard(admin(), { key: KEY, token: 1 }, many)).toHaveLength(20_000);
  });

  it('without commands only remembers the token', async () => {
    expect(await fence.guard(admin(), { key: KEY, token: 96 }, [])).toEqual([]);
    await expect(append(64)).rejects.toThrow(StaleFencingTokenError);
  });

  it('reading under it keeps an older holder from changing what was read', async () => {
    await admin().set('left', 5);
    const write = (token: number, left: number) =>
      fence.guard(admin(), { key: KEY, token }, [['SET', 'left', left]]).catch((error: Error) => error.name);
    const careless = Number(await admin().get('left'));
    expect(await write(64, 4)).toEqual(['OK']); // in between, from one who lost the lock: nobody knows of 96 yet
    expect(await write(96, careless - 1)).toEqual(['OK']);
    expect(await admin().get('left')).toBe('4'); // one sale was lost

    const [careful] = await fence.guard(admin(), { key: KEY, token: 160 }, [['GET', 'left']]);
    expect(await write(128, 3)).toBe('StaleFencingTokenError');
    expect(await write(160, Number(careful) - 1)).toEqual(['OK']);
    expect(await admin().get('left')).toBe('3');
  });

  it('many writers at once: what was written is in the order of the tokens, and nobody else was let in', async () => {
    const connections = [connect(), connect(), connect()];
    const write = async (writer: number): Promise<[token: number, isWritten: boolean]> => {
      const token = 1 + ((writer * 7_919) % 200);
      const guarded = fence.guard(connections[writer % 3]!, { key: KEY, token }, [
        ['RPUSH', 'log', token],
        ['RPUSH', 'log', token],
        ['SET', 'last', token],
      ]);
      return [token, await guarded.then(Boolean, () => false)];
    };
    const results = await Promise.all(Array.from({ length: 600 }, (_, writer) => write(writer)));
    const written = (await log()).map(Number);
    expect(written).toEqual([...written].sort((a, b) => a - b));
    const accepted = results.filter(([, isWritten]) => isWritten).flatMap(([token]) => [token, token]);
    expect(written).toEqual(accepted.sort((a, b) => a - b));
    expect([await admin().get('last'), await admin().get(KEY)]).toEqual(['200', '200']);
  });

  it('takes the lease itself, and the tokens of leases that follow each other', async () => {
    const { locks } = await start();
    const guard = (lease: Awaited<ReturnType<typeof locks.acquire>>) =>
      fence.guard(admin(), { key: KEY, lease }, [['RPUSH', 'log', lease.fencingToken]]);
    const first = await locks.acquire('a');
    await guard(first);
    await first.release();
    await using second = await locks.acquire('a');
    await guard(second);
    await expect(guard(first)).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'released' });
    await expect(append(first.fencingToken)).rejects.toThrow(StaleFencingTokenError);
    expect(await log()).toEqual([first, second].map(({ fencingToken }) => String(fencingToken)));
  });

  it('remembers for ever, or for ttlMs after the last accepted write', async () => {
    const guard = (token: number, ttlMs?: number) =>
      fence.guard(admin(), { key: KEY, token, ...(ttlMs && { ttlMs }) }, []);
    await guard(1);
    expect((await keysWithTtl(admin()))[KEY]).toBe(-1);
    await guard(2, 60_000);
    expect((await keysWithTtl(admin()))[KEY]).toBeGreaterThan(50_000);
    await admin().pexpire(KEY, 20_000);
    await rejection(guard(1, 60_000));
    expect((await keysWithTtl(admin()))[KEY]).toBeLessThanOrEqual(20_000);
    await guard(2, 60_000);
    expect((await keysWithTtl(admin()))[KEY]).toBeGreaterThan(50_000);
    await guard(2);
    expect((await keysWithTtl(admin()))[KEY]).toBe(-1);
  });

  it('refuses a stale write until nobody has written for ttlMs, and accepts it after that; without ttlMs never', async () => {
    const write = (token: number, ttlMs: number | undefined) =>
      fence.guard(admin(), { key: KEY, token, ...(ttlMs && { ttlMs }) }, [['SET', 'value', token]]);
    /** All stand still for so long that a key which is remembered for less is gone. */
    const passes = async (ms: number): Promise<void> => {
      const ttlMs = await admin().pttl(KEY);
      if (ttlMs >= 0) await admin().pexpire(KEY, Math.max(0, ttlMs - ms));
    };
    const [stale, next] = [64, 96];
    await write(next, 60_000);
    for (let times = 0; times < 5; times++) {
      await passes(50_000);
      await expect(write(stale, 60_000)).rejects.toThrow(StaleFencingTokenError);
      await write(next, 60_000); // the later holder works on, so the guard remembers
    }
    await passes(60_000);
    expect(await write(stale, 60_000)).toEqual(['OK']); // the bound that the guide states
    expect(await write(next, undefined)).toEqual(['OK']);
    await passes(365 * 86_400_000);
    await expect(write(stale, 60_000)).rejects.toThrow(StaleFencingTokenError);
    expect(await admin().get('value')).toBe(String(next));
  });

  it('goes by the hash of the script, and loads it again where it is gone', async () => {
    await admin().script('FLUSH');
    await resetCounts(admin());
    for (let i = 0; i < 3; i++) await append(64 + i);
    expect(await commandCounts(admin())).toMatchObject({ evalsha: 3, eval: 1 });
    expect(await admin().script('EXISTS', GUARD.sha)).toEqual([1]);
    expect(await log()).toEqual(['64', '65', '66']);
  });

  it.each<[string, RedisOptions]>([
    ['a keyPrefix', { keyPrefix: 'shop:' }],
    ['a keyPrefix and autopipelining', { keyPrefix: 'shop:', enableAutoPipelining: true }],
    ['a keyPrefix and stringNumbers', { keyPrefix: 'shop:', stringNumbers: true }],
  ])('a client with %s: its own reads find what was written', async (_what, options) => {
    const client = connect(options);
    const replies = await fence.guard(client, { key: KEY, token: 64 }, [
      ['SET', 'a', 'a'],
      ['MSET', 'b', 'c', 'c', 'b'],
      ['LPUSH', Buffer.from('d'), 'x'],
      ['COPY', 'a', 'e'],
      ['ZADD', 'z', 1, 'one'],
      ['ZUNIONSTORE', 'u', 1, 'z', 'WEIGHTS', 2],
    ]);
    expect(replies.map(Number)).toEqual([NaN, NaN, 1, 1, 1, 1]);
    const keys = [KEY, 'a', 'b', 'c', 'd', 'e', 'u', 'z'].map((key) => `shop:${key}`);
    expect((await admin().keys('*')).sort()).toEqual(keys.sort());
    expect(await client.mget('a', 'b', 'c', 'e')).toEqual(['a', 'c', 'b', 'a']);
    expect(await client.get(KEY)).toBe('64');
    const error = await rejection(fence.guard(client, { key: KEY, token: 63 }, []));
    expect(error).toMatchObject({ resource: KEY, newestToken: 64 });
  });

  it('does not change the client', async () => {
    const client = connect();
    await client.ping();
    const describeClient = () => ({
      properties: Object.keys(client).sort(),
      methods: Object.getOwnPropertyNames(Object.getPrototypeOf(client)).sort(),
      scripts: Object.keys(client.scriptsSet),
      options: { ...client.options },
      listeners: client.eventNames().map((name) => [name, client.listeners(name)]),
    });
    const before = describeClient();
    await admin().script('FLUSH');
    await fence.guard(client, { key: KEY, token: 1 }, [['SET', 'a', 1]]);
    expect(describeClient()).toEqual(before);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['a list', () => admin().rpush(KEY, 'x')],
    ['a text', () => admin().set(KEY, 'x')],
    ['a fraction', () => admin().set(KEY, '1.5')],
    ['what is beyond all tokens', () => admin().set(KEY, '1'.repeat(17))],
    ['an empty text', () => admin().set(KEY, '')],
  ])('leaves somebody else’s key alone: %s', async (_what, occupy) => {
    await occupy();
    const before = await admin().dump(KEY);
    const error = await rejection(append(64));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(
      /write under the guard "fence:a": .*WRONGTYPE.*Give the guard a key that nothing else uses/,
    );
    expect(await admin().dump(KEY)).toEqual(before);
    expect(await log()).toEqual([]);
  });

  it('a command that fails: those before it were executed, those after it were not, and it can be put right', async () => {
    await admin().set('text', 'x');
    const write = (key: string) =>
      fence.guard(admin(), { key: KEY, token: 64 }, [
        ['SET', 'before', 1],
        ['RPUSH', key, 'a secret'],
        ['SET', 'after', 1],
      ]);
    const error = await rejection(write('text'));
    expect(error).toBeInstanceOf(FencedCommandError);
    expect(error).toMatchObject({ index: 1, command: 'RPUSH', reason: expect.stringContaining('WRONGTYPE') });
    expect(inspect(error, { depth: 9 })).not.toContain('a secret');
    expect(await admin().mget('before', 'after', KEY)).toEqual(['1', null, '64']);
    expect(await write('log')).toEqual(['OK', 1, 'OK']);
  });

  it.each<[string, [string, ...string[]]]>([
    ['with too few arguments', ['SET', 'a']],
    ['of a wrong kind', ['HSET', 'b', 'c', 'd']],
  ])('a command %s fails as one', async (_what, command) => {
    const error = await rejection(fence.guard(admin(), { key: KEY, token: 64 }, [['SET', 'b', 1], command]));
    expect(error).toMatchObject({ code: 'FENCED_COMMAND_FAILED', index: 1, command: command[0] });
    expect(error.message).not.toContain('user_script');
  });

  it.each<[string, ...string[]]>([
    ['eval_ro', 'return 1', '0'],
    ['evalsha_ro', 'f'.repeat(40), '0'],
    ['fcall_ro', 'nosuch', '0'],
    ['ssubscribe', 'news'],
    ['role'],
    ['save'],
    ['bgsave'],
    ['shutdown'],
    ['failover'],
    ['replicaof', 'no', 'one'],
    ['debug', 'sleep', '0'],
    ['client', 'reply', 'off'],
    ['CLIENT', 'LIST'],
    ['config', 'set', 'maxmemory', '0'],
    ['script', 'flush'],
    ['acl', 'whoami'],
    ['nosuch', 'a'],
  ])('%s would fail in the middle: it is refused, and nothing was executed', async (...command) => {
    const commands: [string, ...string[]][] = [['SET', 'before', '1'], command];
    for (const client of [connect(), admin()]) {
      const error = await rejection(fence.guard(client, { key: KEY, token: 64 }, commands));
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toMatch(/commands\[1\] is .*, which .*Redis/);
    }
    expect(await admin().keys('*')).toEqual([]);
  });

  it('asks Redis what it runs in scripts, once for each command, and not again', async () => {
    const client = connect();
    const write = (token: number) =>
      fence.guard(client, { key: KEY, token }, [
        ['SET', 'a', token],
        ['GET', 'a'],
        ['OBJECT', 'ENCODING', 'a'],
      ]);
    await write(64);
    await resetCounts(admin());
    expect(await write(96)).toEqual(['OK', '96', 'int']);
    expect(Object.keys(await commandCounts(admin())).filter((name) => name.startsWith('command'))).toEqual([]);
  });

  it('who may not ask is warned once, and goes by the list', async () => {
    await admin().call('ACL', 'SETUSER', 'writer', 'reset', 'on', '>pw', '~*', '+@all', '-command');
    const client = connect({ username: 'writer', password: 'pw' });
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue(undefined);
    try {
      for (const token of [64, 96]) {
        expect(await fence.guard(client, { key: KEY, token }, [['SET', 'a', 'a secret']])).toEqual(['OK']);
      }
      expect(warn.mock.calls.map(([text]) => text)).toEqual([
        expect.stringMatching(/^fence.guard cannot ask Redis .*NOPERM.*list of its own.*\+command\|info/),
      ]);
    } finally {
      warn.mockRestore();
    }
    const listed = fence.guard(client, { key: KEY, token: 96 }, [['eval_ro', 'return 1', 0]]);
    expect(await rejection(listed)).toBeInstanceOf(InvalidLockOptionsError);
  });

  it('refuses early only what Redis does not run in scripts', async () => {
    const infos = (await admin().call('COMMAND', 'INFO', ...NOT_IN_SCRIPTS)) as (
      | [string, number, Iterable<string>]
      | null
    )[];
    // FCALL is not known before Redis 7.
    const allowed = infos.filter((info) => info && ![...info[2]].includes('noscript'));
    expect(allowed).toEqual([]);
    expect(infos.filter(Boolean).length).toBeGreaterThan(15);
  });

  it('Redis without memory: nothing was executed, not even the token', async () => {
    await append(64);
    await admin().config('SET', 'maxmemory', '1');
    try {
      expect((await rejection(append(96))).message).toMatch(/write under the guard "fence:a": .*OOM/);
    } finally {
      await admin().config('SET', 'maxmemory', '0');
    }
    expect([await admin().get(KEY), await log()]).toEqual(['64', ['64']]);
  });

  it('an ACL user that may not write: no argument is told', async () => {
    await admin().call('ACL', 'SETUSER', 'reader', 'reset', 'on', '>pw', '~*', '+@connection', '+@read', '+info');
    const client = connect({ username: 'reader', password: 'pw' });
    const error = await rejection(fence.guard(client, { key: KEY, token: 1 }, [['SET', 'a', 'a secret']]));
    expect(error.message).toMatch(/NOPERM.*The ACL user needs EVALSHA, EVAL, GET, SET/);
    expect(inspect(error, { depth: 9 })).not.toContain('a secret');
  });

  it('a reply that was lost: the same token may write again, and a later holder makes that stale', async () => {
    const client = connect({ autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, commandTimeout: 200 });
    await fence.guard(client, { key: 'fence:b', token: 1 }, [['SET', 'b', 'asked before']]);
    const write = () => fence.guard(client, { key: KEY, token: 64 }, [['SET', 'a', 'by 64']]);
    await redis().pause();
    const error = await rejection(write());
    await redis().resume();
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', cause: { failure: 'unknown' } });
    await eventually(async () => expect(await admin().get('a')).toBe('by 64'));
    expect(await write()).toEqual(['OK']);
    await fence.guard(admin(), { key: KEY, token: 96 }, [['SET', 'a', 'by 96']]);
    await expect(write()).rejects.toThrow(StaleFencingTokenError);
    expect(await admin().get('a')).toBe('by 96');
  });
});

describe('fence.guard on a cluster', () => {
  const node = useRedis({ args: ['--cluster-enabled', 'yes'] });
  let cluster: Cluster;
  beforeAll(async () => {
    const admin = new Redis(node().url);
    // Where a container's port is published, too.
    await admin.config('SET', 'cluster-announce-ip', '127.0.0.1');
    await admin.config('SET', 'cluster-announce-port', node().port);
    await admin.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    await eventually(async () => expect(await admin.call('CLUSTER', 'INFO')).toContain('cluster_state:ok'));
    admin.disconnect();
    cluster = new Cluster([{ host: '127.0.0.1', port: node().port }], { keyPrefix: 'shop:' });
  });
  afterAll(() => cluster.disconnect());

  it('works where all keys have one hash tag', async () => {
    const guard = { key: 'fence:{7}', token: 64 };
    expect(await fence.guard(cluster, guard, [['SET', '{7}:a', 1]])).toEqual(['OK']);
    expect(await cluster.get('{7}:a')).toBe('1');
    await expect(fence.guard(cluster, { ...guard, token: 63 }, [])).rejects.toThrow(StaleFencingTokenError);
  });

  it('is told what to do where they have not, and nothing was executed', async () => {
    const error = await rejection(
      fence.guard(cluster, { key: 'fence:7', token: 64 }, [
        ['SET', 'a', 1],
        ['SET', 'b', 1],
      ]),
    );
    expect(error.message).toMatch(/CROSSSLOT.*On a cluster, .* the same hash tag/);
    for (const key of ['fence:7', 'a', 'b']) expect(await cluster.exists(key)).toBe(0);
  });
});
