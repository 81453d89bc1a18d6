import { inspect } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import {
  DistributedLock,
  InvalidLockOptionsError,
  type LockEvent,
  LockUnavailableError,
  RedisLockModule,
  RedisLockService,
} from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';
import { inMemory, LogBook, useApps } from '../nest-apps.js';

let finish = gate();
let running = 0;

@Injectable()
class Reports {
  constructor(readonly locks: RedisLockService) {}

  @DistributedLock({ key: 'reports', waitMs: 0 })
  async build(): Promise<string> {
    running++;
    await finish.opened;
    running--;
    return 'built';
  }

  @DistributedLock({ key: 'reports', waitMs: 600, onBusy: 'skip' })
  async buildUnlessBusy(): Promise<string | undefined> {
    return 'built';
  }

  @DistributedLock({ key: 'quick', attemptTimeoutMs: 100 })
  async quick(duringWork: () => void = () => {}): Promise<string> {
    duringWork();
    return 'quickly';
  }
}

describe('an application on Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();
  beforeEach(() => {
    finish = gate();
    running = 0;
  });
  afterEach(() => finish.open());

  const startReports = (options: Parameters<typeof inMemory>[0] = {}) =>
    start({ imports: [inMemory({ connection: redis().url, ...options })], providers: [Reports] });
  const lockKeys = async (prefix = 'lock'): Promise<string[]> => admin().keys(`${prefix}:{*`);

  it('uses a client of the user without changing or closing it', async () => {
    const client = new Redis(redis().url, { keyPrefix: 'mine:', connectionName: 'of-the-user' });
    await client.ping();
    const before = { ...client.options };
    const members = Object.getOwnPropertyNames(client).sort();
    const { app } = await startReports({ connection: client });
    const work = app.get(Reports).build();
    await eventually(() => expect(running).toBe(1));
    expect(await lockKeys('mine:lock')).toEqual(['mine:lock:{reports}']);
    finish.open();
    await work;
    await app.close();
    expect(client.status).toBe('ready');
    expect(await client.ping()).toBe('PONG');
    expect({ ...client.options }).toEqual(before);
    expect(Object.getOwnPropertyNames(client).sort()).toEqual(members);
    client.disconnect();
  });

  it.each(['URL', 'options', 'client'])(
    'connects by %s, and leaves no connection behind when it closes',
    async (how) => {
      const mine = new Redis(redis().url);
      const connection = { URL: redis().url, options: { host: '127.0.0.1', port: redis().port }, client: mine }[how]!;
      const { app } = await startReports({ connection, instanceId: 'the-app' });
      expect(await app.get(Reports).quick()).toBe('quickly');
      const ours = async (): Promise<number> =>
        String(await admin().client('LIST'))
          .split('\n')
          .filter((line) => line.includes('nestjs-redis-lock:the-app')).length;
      expect(await ours()).toBe(2);
      await app.close();
      await eventually(async () => expect(await ours()).toBe(0));
      expect(mine.status).toBe('ready');
      mine.disconnect();
    },
  );

  it('gives the result of a method whose release fails, and tells the observers and the log', async () => {
    await using proxy = await TcpProxy.start(redis().port);
    const events: LockEvent[] = [];
    const { app, log } = await startReports({ connection: proxy.url, observers: [(event) => events.push(event)] });
    expect(await app.get(Reports).quick(() => proxy.blackHole('toServer', 'commands'))).toBe('quickly');
    // A first command that is answered late would be a wait as well.
    const types = events.map(({ type }) => type).filter((type) => type !== 'waiting');
    expect(types).toEqual(['acquired', 'releaseFailed']);
    expect(log.at('warn').join()).toContain('Redis could not release "quick"');
    proxy.heal();
    // It is sent again in the background.
    await eventually(async () => expect(await lockKeys()).toEqual([]));
  });

  it('starts with a warning while Redis is down, fails with LockUnavailableError, and recovers by itself', async () => {
    const own = await startRedis();
    await own.kill();
    const connection = { host: '127.0.0.1', port: own.port, password: '' };
    const { app, log } = await startReports({ connection, attemptTimeoutMs: 200, waitMs: 200 });
    expect(log.at('warn').join()).toMatch(
      /^The application starts, but it is not connected to Redis at 127\.0\.0\.1:\d+ \(.*ECONNREFUSED.*\)\. It keeps trying/,
    );
    const reports = app.get(Reports);
    const error = await rejection(reports.quick());
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('Redis could not acquire "quick": not connected to Redis at 127.0.0.1');
    await own.restart();
    await eventually(async () => expect(await reports.quick()).toBe('quickly'));
    await eventually(() =>
      expect(log.at('log').filter((line) => line.startsWith('Connected'))).toEqual([
        expect.stringMatching(/^Connected to Redis, [\d.]+ m?s after the start\.$/),
      ]),
    );
    await app.close();
    await own.stop();
  });

  it("does not take a Redis that dies during the wait for a busy lock, also with onBusy: 'skip'", async () => {
    const own = await startRedis();
    const [one, two] = [await startReports({ connection: own.url }), await startReports({ connection: own.url })];
    await one.app.get(RedisLockService).acquire('reports');
    expect(await two.app.get(Reports).buildUnlessBusy()).toBeUndefined();
    const waiting = rejection(two.app.get(Reports).buildUnlessBusy());
    const waiters = async () => (await one.app.get(RedisLockService).inspect('reports')).waiters;
    await eventually(async () => expect(await waiters()).toHaveLength(1));
    await own.kill();
    expect(await waiting).toBeInstanceOf(LockUnavailableError);
    await own.stop();
  });
});

const SECRET = 'hunter2';
const [A, B] = [`redis://:${SECRET}@a:1`, 'redis://b:2'];

const OBJECT = 'quorum must be an object with the nodes in it, quorum: { connections: [...] }';

const bad: [string, object, string, string][] = [
  [
    'both',
    { connection: 'memory:', quorum: { connections: [A] } },
    'quorum',
    'Set either connection or quorum, not both.',
  ],
  ['a URL in place of the object', { quorum: A }, 'quorum', `${OBJECT}, not a string.`],
  ['a list in place of the object', { quorum: [A, B] }, 'quorum', `${OBJECT}, not an array.`],
  ['nothing in place of the object', { quorum: null }, 'quorum', `${OBJECT}, not null.`],
  ['no list', { quorum: {} }, 'quorum.connections', 'quorum.connections'],
  [
    'a URL in place of the list',
    { quorum: { connections: A } },
    'quorum.connections',
    'quorum.connections must be an array of connections, not a string.',
  ],
  ['a misspelt option', { quorum: { connections: [A], fencng: true } }, 'fencng', 'Did you mean fencing?'],
  [
    'nothing in it',
    { quorum: { connections: [] } },
    'quorum.connections',
    'quorum.connections must have 1 to 9 connections, not 0.',
  ],
  [
    'too many',
    { quorum: { connections: Array.from({ length: 10 }, (_, i) => `redis://h${i}`) } },
    'quorum.connections',
    '1 to 9 connections, not 10.',
  ],
  [
    'a node twice',
    { quorum: { connections: [A, B, 'redis://a:1'] } },
    'quorum.connections',
    'quorum.connections[2] is a:1, and so is quorum.connections[0]',
  ],
  [
    'another database',
    { quorum: { connections: [B, `${B}/3`] } },
    'quorum.connections',
    'another database of the same server is not another server',
  ],
  [
    'a socket twice',
    { quorum: { connections: ['/run/redis.sock', { path: '/run/redis.sock' }] } },
    'quorum.connections',
    'quorum.connections[1] is /run/redis.sock',
  ],
  [
    'the loopback by two names',
    { quorum: { connections: ['redis://127.0.0.1', { host: 'localhost' }] } },
    'quorum.connections',
    'quorum.connections[1] is localhost:6379',
  ],
  [
    'memory',
    { quorum: { connections: ['memory:', B] } },
    'quorum.connections',
    "quorum.connections[0] must be a Redis, not 'memory:'.",
  ],
  [
    'what is no connection',
    { quorum: { connections: [A, 7] } },
    'quorum.connections',
    'quorum.connections[1] must be a URL such as',
  ],
  [
    'a text that is no URL',
    { quorum: { connections: [A, `a:${SECRET}`] } },
    'quorum.connections',
    'quorum.connections[1] must be a URL such as',
  ],
  [
    'nothing as a node',
    { quorum: { connections: [A, undefined] } },
    'quorum.connections',
    'quorum.connections[1] must be a URL such as',
  ],
  [
    'an impatient node',
    { quorum: { connections: [A], nodeTimeoutMs: 9 } },
    'quorum.nodeTimeoutMs',
    'quorum.nodeTimeoutMs must be an integer from 10',
  ],
  [
    'fencing that is no boolean',
    { quorum: { connections: [A], fencing: 'yes' } },
    'quorum.fencing',
    'quorum.fencing must be true or false',
  ],
  [
    'fencing on one Redis',
    { connection: 'memory:', fencing: true },
    'fencing',
    'fencing is for a quorum: write quorum: { connections: [...], fencing }. On one Redis, fencing tokens grow without it',
  ],
  [
    'an option beside it',
    { quorum: { connections: [A] }, nodeTimeoutMs: 50 },
    'nodeTimeoutMs',
    'nodeTimeoutMs is for a quorum: write quorum: { connections: [...], nodeTimeoutMs }',
  ],
];

describe('a quorum', () => {
  it.each(bad)('is refused at boot with %s, without a word of the password', async (_, options, option, message) => {
    const start = async () =>
      Test.createTestingModule({ imports: [RedisLockModule.forRoot(options as never)] }).compile();
    const error = await rejection(start());
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error).toMatchObject({ option, message: expect.stringContaining(message) });
    expect(inspect(error)).not.toContain(SECRET);
  });

  it('is refused with a Cluster in it', () => {
    const cluster = new Cluster([{ port: 1 }], { lazyConnect: true });
    expect(() => RedisLockModule.forRoot({ quorum: { connections: [A, cluster as never] } })).toThrow(
      'quorum.connections[1] must be one independent primary, not a Cluster',
    );
    cluster.disconnect();
  });

  it('takes whatever a connection may be, and shows no password to who prints the module', () => {
    const client = new Redis({ lazyConnect: true, host: 'c', password: SECRET });
    const module = RedisLockModule.forRoot({
      quorum: {
        connections: [A, { host: 'b', password: SECRET }, client, '/run/redis.sock'],
        fencing: true,
        nodeTimeoutMs: 10,
      },
    });
    expect(inspect(module, { depth: 9, showHidden: true })).not.toContain(SECRET);
    client.disconnect();
  });

  describe('none of which is there', () => {
    it('lets the application start, with a warning; semaphores are refused with a way out', async () => {
      const log = new LogBook();
      const module = RedisLockModule.forRoot({
        quorum: { connections: [1, 2, 3].map((port) => `redis://:${SECRET}@127.0.0.1:${port}`) },
        attemptTimeoutMs: 100,
        waitMs: 100,
      });
      const app = await Test.createTestingModule({ imports: [module] })
        .setLogger(log)
        .compile();
      expect(log.at('warn')).toEqual([
        expect.stringMatching(/^The application starts, but 3 of 3 nodes cannot be reached/),
      ]);
      const locks = app.get(RedisLockService);
      // A mistake of the program, which no later try mends: no LockUnavailableError.
      const use = () => locks.semaphore('exports', { permits: 3 });
      expect(use).toThrow(InvalidLockOptionsError);
      expect(use).toThrow(/on one Redis: register the module a second time/);
      const error = await rejection(locks.acquire('stock'));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(/2 of 3 nodes needed, got 0: 127\.0\.0\.1:1 not connected/);
      expect(inspect([error, log.calls], { depth: 9 })).not.toContain(SECRET);
      await app.close();
    });
  });
});
