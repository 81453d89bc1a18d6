import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockClient } from '../../../lib/core/lock-client.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { eventually, rejection } from '../../../test/support/expect/eventually.js';
import { TcpProxy } from '../../../test/support/network/tcp-proxy.js';
import { ChaosRedis } from './chaos-redis.js';

/** Sends one command after another as a careless client would, and collects what it is told. */
class Bystander implements AsyncDisposable {
  readonly #client: Redis;
  readonly #replies = new Set<string>();
  #isOver = false;
  readonly #asking: Promise<void>;

  constructor(redis: ChaosRedis, ...command: [string, ...string[]]) {
    this.#client = new Redis(redis.port, {
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      retryStrategy: () => 5,
    });
    this.#client.on('error', () => undefined);
    this.#asking = this.#ask(command);
  }

  /** The first words of all replies so far, each once. */
  get replies(): string[] {
    return [...this.#replies].sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#asking;
    this.#client.disconnect();
  }

  async #ask([name, ...args]: [string, ...string[]]): Promise<void> {
    for (; !this.#isOver; await sleep(1)) {
      const reply = await this.#client.call(name, ...args).catch((error: Error) => error.message);
      this.#replies.add(String(reply).split(' ')[0]!);
    }
  }
}

describe('a Redis to mistreat', () => {
  let aof: ChaosRedis;
  let forgetful: ChaosRedis;
  beforeAll(async () => {
    [aof, forgetful] = await Promise.all([
      ChaosRedis.start({ persistence: 'aof' }),
      ChaosRedis.start({ persistence: 'none' }),
    ]);
  });
  afterAll(() => Promise.all([aof, forgetful].map((redis) => redis[Symbol.asyncDispose]())));
  const clients: Redis[] = [];
  const connect = (url = `redis://127.0.0.1:${aof.port}`): Redis => {
    const client = new Redis(url, { enableReadyCheck: false });
    clients.push(client);
    return client;
  };
  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    for (const { admin } of [aof, forgetful]) await admin.flushall();
  });

  /** What faults change. */
  const settings = (redis: ChaosRedis): Promise<unknown[]> => {
    const names = ['maxmemory', 'maxmemory-policy', 'maxmemory-samples', 'lua-time-limit', 'key-load-delay'];
    return Promise.all(names.map((name) => redis.admin.config('GET', name)));
  };

  it('lets a lock be taken by the documented user, also through a proxy, and nothing else be done by it', async () => {
    await using proxy = await TcpProxy.start(aof.port);
    for (const connection of [aof.url, aof.urlAt(proxy.port)]) {
      const store = new RedisLockStore({ connection, keyPrefix: 'lock', instanceId: 'a', leaseMs: 5_000 });
      const locks = new LockClient({ store, defaults: { leaseMs: 5_000, waitMs: 5_000 } });
      await store.start(5_000);
      await (await locks.acquire('x')).release();
      await locks.shutdown(0);
    }
    const client = connect(aof.url);
    const refusals = await Promise.all([rejection(client.set('other', '1')), rejection(client.flushall())]);
    for (const error of refusals) expect(error.message).toMatch(/^NOPERM/);
  });

  it('comes back from a kill on the same port, with its users, and with its data or without', async () => {
    for (const { redis, data } of [
      { redis: aof, data: 'there' },
      { redis: forgetful, data: null },
    ]) {
      await redis.admin.set('key', 'there');
      await redis.kill();
      await redis.restart();
      expect(await redis.admin.get('key')).toBe(data);
      expect(await redis.admin.call('ACL', 'USERS')).toEqual(['default', 'locks']);
    }
  });

  it('is silent while it is paused, and answers afterwards', async () => {
    let isOver = false;
    const paused = aof.pause(150).finally(() => (isOver = true));
    let longestMs = 0;
    while (!isOver) {
      const from = performance.now();
      await aof.admin.ping();
      longestMs = Math.max(longestMs, performance.now() - from);
    }
    expect(longestMs).toBeGreaterThan(145);
    await paused;
  });

  it.each(['normal', 'pubsub'] as const)('closes the connections of type %s, not its own', async (type) => {
    const [caller, listener] = [connect(), connect()];
    const closed: string[] = [];
    caller.on('close', () => closed.push('normal'));
    listener.on('close', () => closed.push('pubsub'));
    await Promise.all([caller.ping(), listener.subscribe('channel')]);
    const id = await aof.admin.client('ID');
    expect(await aof.killClients(type)).toBe(1);
    await eventually(() => expect(closed).toEqual([type]));
    expect(await aof.admin.client('ID')).toBe(id);
  });

  it('forgets its scripts, for a while', async () => {
    const sha = (await aof.admin.script('LOAD', 'return 1')) as string;
    await using bystander = new Bystander(aof, 'EVALSHA', sha, '0');
    await eventually(() => expect(bystander.replies).toEqual(['1']));
    expect(await aof.flushScripts(500)).toBeGreaterThan(1);
    expect(bystander.replies).toEqual(['1', 'NOSCRIPT']);
    await aof.admin.script('LOAD', 'return 1');
    await sleep(20);
    expect(await aof.admin.evalsha(sha, 0)).toBe(1);
  });

  it.each([
    ['ALL', 100],
    ['WRITE', 0],
  ] as const)('lets clients wait (%s)', async (which, readsWaitMs) => {
    const client = connect();
    await client.ping();
    const from = performance.now();
    const paused = aof.pauseClients(120, which);
    await sleep(10);
    const took = async (reply: Promise<unknown>): Promise<number> => reply.then(() => performance.now() - from);
    const [read, written] = await Promise.all([took(client.get('key')), took(client.set('key', '1'))]);
    expect(written).toBeGreaterThan(100);
    expect(read).toBeGreaterThan(readsWaitMs);
    if (which === 'WRITE') expect(await aof.admin.ping()).toBe('PONG');
    await paused;
  });

  it('is busy with a script for the time asked for', async () => {
    const before = await settings(aof);
    await using bystander = new Bystander(aof, 'SET', 'key', '1');
    await eventually(() => expect(bystander.replies).toEqual(['OK']));
    const from = performance.now();
    await aof.busy(150);
    expect(performance.now() - from).toBeGreaterThan(150);
    expect(performance.now() - from).toBeLessThan(5_000);
    expect(bystander.replies).toEqual(['BUSY', 'OK']);
    expect(await aof.admin.set('key', '2')).toBe('OK');
    expect(await settings(aof)).toEqual(before);
  });

  it('reads its data for the time asked for, and has them again', async () => {
    const before = await settings(aof);
    await aof.admin.set('key', 'there');
    await using bystander = new Bystander(aof, 'GET', 'key');
    await eventually(() => expect(bystander.replies).toEqual(['there']));
    const from = performance.now();
    await aof.loading(200);
    expect(performance.now() - from).toBeGreaterThan(200);
    expect(performance.now() - from).toBeLessThan(5_000);
    expect(bystander.replies).toContain('LOADING');
    expect(bystander.replies).not.toContain('null');
    expect(await aof.admin.keys('*')).toEqual(['key']);
    expect(await settings(aof)).toEqual(before);
    await expect(forgetful.loading(1)).rejects.toThrow('nothing to load');
  });

  it('refuses to use memory, also over a restart', async () => {
    const before = await settings(aof);
    await using bystander = new Bystander(aof, 'SET', 'key', '1');
    await eventually(() => expect(bystander.replies).toEqual(['OK']));
    await aof.refuseMemory(500);
    expect(bystander.replies).toEqual(['OK', 'OOM']);
    const refused = aof.refuseMemory(100);
    await aof.kill();
    await aof.restart();
    await refused;
    expect(await aof.admin.set('key', '2')).toBe('OK');
    expect(await settings(aof)).toEqual(before);
  });

  it('evicts what expires first, or anything, and refuses no write', async () => {
    const before = await settings(aof);
    const fill = async (): Promise<void> => {
      await aof.admin.set('fence', '1');
      for (let i = 0; i < 40; i++) await aof.admin.set(`lock-${i}`, 'owner'.repeat(10), 'PX', 60_000);
    };
    await fill();
    await using bystander = new Bystander(aof, 'SET', 'other', '1', 'PX', '60000');
    expect(await aof.evict(150)).toBeGreaterThan(20);
    const left = await aof.admin.keys('*');
    expect(left.length).toBeLessThan(20);
    expect(left).toContain('fence');
    let losesFence = false;
    for (let i = 0; i < 100 && !losesFence; i++) {
      await fill();
      await aof.evict(20, 'allkeys-random');
      losesFence = (await aof.admin.exists('fence')) === 0;
    }
    expect(losesFence).toBe(true);
    expect(bystander.replies).toEqual(['OK']);
    expect(await settings(aof)).toEqual(before);
  });
});
