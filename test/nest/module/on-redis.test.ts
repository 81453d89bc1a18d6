import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DistributedLock, type LockEvent, LockUnavailableError, RedisLockService } from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { inMemory, useApps } from '../nest-apps.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { gate } from '../../support/expect/tracked.js';

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

  it('starts while Redis is down, says so, fails with LockUnavailableError meanwhile, and recovers by itself', async () => {
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
