import { jest } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockEvent } from '../../../lib/kernel/events/events.js';
import { SystemRandom } from '../../../lib/kernel/util/clock.js';
import { createLockService } from '../../../lib/nest/module/create-lock-service.js';
import { type RedisLockModuleOptions, resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { ScriptRunner } from '../../../lib/redis/script/script-runner.js';
import { RENEW } from '../../../lib/redis/script/scripts.js';
import { eventually } from '../../support/expect/eventually.js';
import { Instruments } from '../../support/expect/instruments.js';
import { lockConnection } from '../../support/redis/lock-user.js';
import { useRedisCluster } from '../../support/redis/redis-cluster.js';
import { type RedisServer, startRedis, useRedis } from '../../support/redis/redis-server.js';

const QUIET = { watchdog: true, shutdown: { drainMs: 0 }, leaseMs: 3_000, waitMs: 20_000 };

describe('no event, no channel of ioredis, no debug output and no error has what is secret of an owner', () => {
  const servers: RedisServer[] = [];
  const running: RedisLockService[] = [];
  const ids: string[] = [];
  let events = 0;
  let instruments: Instruments;
  const cluster = useRedisCluster();

  beforeAll(async () => {
    servers.push(...(await Promise.all([startRedis(), startRedis(), startRedis()])));
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop())));
  beforeEach(() => {
    ids.length = 0;
    events = 0;
    const { id } = SystemRandom.prototype;
    jest.spyOn(SystemRandom.prototype, 'id').mockImplementation(function (this: SystemRandom) {
      const secret = id.call(this);
      ids.push(secret);
      return secret;
    });
    instruments = new Instruments();
    instruments.begin();
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((service) => service.beforeApplicationShutdown()));
    instruments.end();
    jest.restoreAllMocks();
  });

  const start = async (options: RedisLockModuleOptions): Promise<RedisLockService> => {
    const observe = (event: LockEvent): void => {
      events++;
      instruments.see(`the event ${event.type}`, event);
    };
    const resolved = resolveModuleOptions({ ...QUIET, ...options, observers: [observe] });
    const { durability } = options;
    // The option wants a replica at least. What is sent is the same without one.
    const service = await createLockService(durability ? { ...resolved, durability: WITHOUT_REPLICAS } : resolved);
    running.push(service);
    return service;
  };
  const urls = () => servers.map(({ url }) => lockConnection(url));
  const TOPOLOGIES: [name: string, options: () => RedisLockModuleOptions, admins: () => readonly RedisServer[]][] = [
    ['one Redis', () => ({ connection: urls()[0]! }), () => servers.slice(0, 1)],
    [
      'one Redis with durability',
      () => ({ connection: urls()[0]!, durability: { replicas: 1 } }),
      () => servers.slice(0, 1),
    ],
    [
      'a quorum of three',
      // A busy machine may need longer than the 50 ms of a server in a quorum.
      () => ({
        quorum: { connections: urls(), nodeTimeoutMs: 2_000 },
        attemptTimeoutMs: 10_000,
        restartQuarantineMs: 0,
      }),
      () => servers,
    ],
    [
      'a cluster of three',
      () => ({ connection: cluster().connection }),
      () => cluster().nodes.map(({ server }) => server),
    ],
  ];

  it.each(TOPOLOGIES)('on %s, whether Redis knows the scripts or not', async (_, options, nodes) => {
    const [a, b] = [await start(options()), await start(options())];
    const admins = nodes().map(({ port }) => new Redis(port));
    for (const isCold of [false, true]) {
      const step = async (run: () => Promise<unknown>): Promise<void> => {
        if (isCold) await Promise.all(admins.map((admin) => admin.script('FLUSH')));
        await run();
      };
      await everyWay(a, b, step, `${isCold}`, !options().quorum);
    }
    for (const admin of admins) admin.disconnect();
    expect(instruments.messages['ioredis:command']).toBeGreaterThan(20);
    expect(events).toBeGreaterThan(20);
    expect(instruments.debugLines).toBeGreaterThan(20);
    expect(instruments.names).toEqual(expect.arrayContaining(['evalsha', 'eval']));
    expect(ids.length).toBeGreaterThan(20);
    for (const id of ids) expect(instruments.placesOf(id)).toEqual([]);
  });

  describe('if Redis repeats the arguments', () => {
    const redis = useRedis({ args: ['--rename-command', 'EVALSHA', ''] });

    it('is not in the error of a command that it does not know', async () => {
      const client = new Redis(redis().url);
      const owner = 'shop-3/Ab12/the-secret-half';
      const call = { script: RENEW, keys: ['l'], args: [owner, 1_000], read: (reply: unknown) => reply };
      const errors: unknown[] = [];
      await new ScriptRunner().send<unknown>(client, call, async (error) => errors.push(error));
      expect(errors).toMatchObject([{ message: expect.stringMatching(/^ERR unknown command/) }]);
      instruments.see('the error', errors);
      expect(instruments.placesOf('the-secret')).toEqual([]);
      client.disconnect();
    });
  });
});

const WITHOUT_REPLICAS = { replicas: 0, timeoutMs: 50 };

/** Every command about a lock that has an owner, one step after another. */
async function everyWay(
  a: RedisLockService,
  b: RedisLockService,
  step: (run: () => Promise<unknown>) => Promise<void>,
  suffix: string,
  hasSemaphores: boolean,
): Promise<void> {
  const name = `order:${suffix}`;
  const whileWaiting = async (waiting: Promise<unknown>, then: () => Promise<unknown>): Promise<void> => {
    await eventually(async () => expect((await a.inspect(name)).waiters).toHaveLength(1));
    await step(then);
    await waiting;
  };
  await step(async () => {
    const lease = await a.acquire(name);
    await step(() => lease.extend(4_000));
    await step(() => lease.verify());
    const next = b.acquire(name).then((each) => each.release());
    await whileWaiting(next, () => lease.release());
  });
  await step(async () => {
    const lease = await a.acquire(name);
    await expect(b.tryAcquire(name)).resolves.toBeNull();
    await step(() => b.forceRelease(name, { fencingToken: lease.fencingToken }));
    await expect(lease.verify()).resolves.toBe(false);
    await lease.release();
  });
  // A row of leases of one process, which the process of another waiter ends.
  await step(async () => {
    const lease = await a.acquire(name, { strictOrder: true });
    const second = a.using(name, { strictOrder: true }, () => step(async () => {}));
    await step(() => lease.release());
    await second;
  });
  await step(async () => {
    const lease = await a.acquire(name, { mode: 'write' });
    await step(() => lease.downgrade());
    await step(() => b.using(name, { mode: 'read' }, () => lease.release()));
  });
  await step(() =>
    a.using(name, { mode: 'reentrant' }, () => step(() => a.using(name, { mode: 'reentrant' }, () => {}))),
  );
  if (hasSemaphores)
    await step(async () => {
      const semaphore = a.semaphore(`exports:${suffix}`, { permits: 3 });
      const lease = await semaphore.acquire({ count: 2 });
      await step(() => lease.releasePermits(1));
      await step(() => semaphore.resize(4));
      await step(() => lease.release());
    });
  await step(async () => {
    const lease = await a.acquire(name, { minHoldMs: 50 });
    await step(() => lease.release());
  });
  await step(() => a.waitUntilFree(name));
  await step(() => a.using([name, `${name}:b`], () => step(async () => {})));
  const job = { job: `nightly ${suffix}`, overlap: 'wait', onCrash: 'retry', claimTtlMs: 60_000, lock: {} } as const;
  await step(() => a.runSingleton({ ...job, tick: 'one' }, () => step(async () => {})));
  await step(() => b.runSingleton({ ...job, tick: 'one' }, () => {}));
  await step(() => a.list());
}
