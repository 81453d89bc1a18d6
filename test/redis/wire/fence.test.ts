import { inspect } from 'node:util';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { InvalidLockOptionsError, LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { fence } from '../../../lib/fence.js';
import { NOT_IN_SCRIPTS } from '../../../lib/features/fence/redis/fenced-commands.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { keysWithTtl, useAdmin } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { FencedCommandError, StaleFencingTokenError } from '../../../lib/features/fence/core/fence-errors.js';

const KEY = 'fence:a';

describe('fence.guard', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
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

  it('remembers forever, or for ttlMs after the last accepted write', async () => {
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

  it('a client with a keyPrefix, autopipelining and stringNumbers finds what it wrote under the guard', async () => {
    const client = connect({ keyPrefix: 'shop:', enableAutoPipelining: true, stringNumbers: true });
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

  it.each<[string, ...string[]]>([
    ['eval_ro', 'return 1', '0'],
    ['role'],
    ['CLIENT', 'LIST'],
    ['config', 'set', 'maxmemory', '0'],
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
});

describe('fence.guard on a cluster', () => {
  const node = useRedis({ args: ['--cluster-enabled', 'yes'] });
  let cluster: Cluster;
  beforeAll(async () => {
    const admin = new Redis(node().url);
    // The published port of a container.
    await admin.config('SET', 'cluster-announce-ip', '127.0.0.1');
    await admin.config('SET', 'cluster-announce-port', node().port);
    await admin.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
    await eventually(async () => expect(await admin.call('CLUSTER', 'INFO')).toContain('cluster_state:ok'));
    admin.disconnect();
    cluster = new Cluster([{ host: '127.0.0.1', port: node().port }], { keyPrefix: 'shop:' });
  });
  afterAll(() => cluster.disconnect());

  it('works if all keys have one hash tag', async () => {
    const guard = { key: 'fence:{7}', token: 64 };
    expect(await fence.guard(cluster, guard, [['SET', '{7}:a', 1]])).toEqual(['OK']);
    expect(await cluster.get('{7}:a')).toBe('1');
    await expect(fence.guard(cluster, { ...guard, token: 63 }, [])).rejects.toThrow(StaleFencingTokenError);
  });

  it('gets an error with a remedy otherwise, and nothing is executed', async () => {
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
