import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { jest } from '@jest/globals';
import type { Redis, RedisOptions } from 'ioredis';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { type LockInstance, untilQueued, useInstances } from '../../support/redis/lock-instances.js';
import { describeOnMachine } from '../../support/redis/describe-on-machine.js';
import { SentinelSet } from '../../support/redis/sentinel-set.js';

/** Two thirds of it are longer than a fail-over on a busy machine. */
const LEASE_MS = 9_000;
const HELD_MS = 2_000;
/** Allowance for an election, a new connection and a busy machine, beyond the promised time. */
const SLACK_MS = 10_000;

type Three = [LockInstance, LockInstance, LockInstance];

describeOnMachine('a sentinel, which makes the replica the primary', () => {
  let set: SentinelSet;
  beforeAll(async () => void (set = await SentinelSet.start()), 60_000);
  afterAll(() => set?.[Symbol.asyncDispose]());
  beforeEach(async () => void (await set.admin().flushall()));
  const start = useInstances(() => set.connection);
  const patient = () => start({ defaults: { leaseMs: LEASE_MS, waitMs: 60_000, attemptTimeoutMs: 20_000 } });
  const startThree = async () => (await Promise.all([patient(), patient(), patient()])) as Three;
  /** An instance that does not listen when a lock is passed on counts as dead. */
  const untilListening = async (...instances: LockInstance[]): Promise<void> => {
    const inboxes = instances.map(({ store }) => store.keys.inbox(store.clientId));
    const listeners = await set.admin().pubsub('NUMSUB', ...inboxes);
    expect(listeners).toEqual(inboxes.flatMap((inbox) => [inbox, 1]));
  };
  const lost = (...instances: LockInstance[]) =>
    instances.flatMap(({ events }) => events.filter(({ type }) => type === 'lost'));

  describe('because the primary was killed', () => {
    it('acquisitions continue within down-after and a lease, even if the holder has died with the primary', async () => {
      const [dead, a, b] = await startThree();
      await dead.locks.acquire('held', { watchdog: false, leaseMs: HELD_MS });
      const from = performance.now();
      const failOver = set.failOver({ lagging: false });
      const granted = await Promise.all([
        a.locks.acquire('free'),
        b.locks.acquire('held').then((lease) => [lease, performance.now()] as const),
      ]);
      expect(performance.now() - from).toBeLessThan(SentinelSet.downAfterMs + HELD_MS + SLACK_MS);
      await failOver;
      for (const lease of [granted[0], granted[1][0]]) await lease.release();
    });

    it('the watchdog keeps what the replica knows of', async () => {
      const [a, b] = await startThree();
      const lease = await a.locks.acquire('x');
      const { signal } = lease;
      await set.failOver({ lagging: false });
      expect(await eventually(() => b.locks.tryAcquire('x'))).toBeNull();
      const before = lease.remainingMs();
      await eventually(() => expect(lease.remainingMs()).toBeGreaterThan(before));
      expect([await lease.verify(), signal.aborted, lost(a)]).toEqual([true, false, []]);
      await lease.release();
    });

    it('those who wait keep their order, and each is granted', async () => {
      const holder = await patient();
      const waiters = await startThree();
      const sections = new CriticalSections();
      const lease = await holder.locks.acquire('x');
      const calls: Promise<void>[] = [];
      for (const waiter of waiters) {
        calls.push(sections.call(waiter));
        await untilQueued(holder, 'x', ...waiters.slice(0, calls.length));
      }
      await set.failOver({ lagging: false });
      await eventually(() => untilListening(...waiters));
      await untilQueued(holder, 'x', ...waiters);
      await lease.release();
      await Promise.all(calls);
      expect(sections.order(...waiters)).toEqual([0, 1, 2]);
      sections.expectSound(3);
      expect(lost(holder, ...waiters)).toEqual([]);
    });
  });

  describe('because somebody told it to (SENTINEL FAILOVER)', () => {
    it('no call reports that a server is a replica: calls only take longer for a while', async () => {
      const instances = await startThree();
      const errors: unknown[] = [];
      let isOver = false;
      let acquired = 0;
      const work = async ({ locks }: LockInstance, resource: string): Promise<void> => {
        while (!isOver) {
          try {
            const lease = await locks.acquire(resource);
            acquired++;
            await lease.release();
          } catch (error) {
            errors.push(error);
          }
        }
      };
      const working = instances.flatMap((instance, i) => [work(instance, `own-${i}`), work(instance, 'common')]);
      await set.switchOver();
      const before = acquired;
      await eventually(() => expect(acquired).toBeGreaterThan(before + 100));
      isOver = true;
      await Promise.all(working);
      // A command that was under way when its connection broke may have been executed, and is not sent twice.
      const messages = errors.map(String).filter((message) => !/connection broke before the reply/.test(message));
      expect(messages).toEqual([]);
    });

    it('all leave the old primary at once, which still is one: nobody gets a lock from it that others have', async () => {
      const [a, b] = await startThree();
      const untilOn = (redis: Redis, instance: LockInstance) =>
        eventually(async () => {
          const clients = String(await redis.client('LIST')).split('\n');
          const own = clients.filter((client) => client.includes(`name=nestjs-redis-lock:${instance.instanceId} `));
          expect(own).toHaveLength(2); // for commands, and to listen
        });
      await set.switchOver(async (old, next) => {
        for (const instance of [a, b]) await untilOn(next, instance);
        const late = await patient();
        const lease = await a.locks.acquire('x');
        expect([await b.locks.tryAcquire('x'), await late.locks.tryAcquire('x')]).toEqual([null, null]);
        expect((await old.role())[0]).toBe('master');
        await lease.release();
      });
    });
  });

  describe('that is not there, or does not answer', () => {
    const live = () => set.connection.sentinels![0]!;

    it('is passed over for another one, and prints nothing', async () => {
      const printed = jest.spyOn(console, 'error').mockImplementation(() => {});
      const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      const sentinels = [{ host: '127.0.0.1', port: 1 }, { host: '127.0.0.1', port }, live()];
      const { locks } = await start({ connection: { ...set.connection, sentinels }, patienceMs: 10_000 });
      await (await locks.acquire('x')).release();
      await locks.shutdown(0);
      silent.close();
      expect(printed.mock.calls).toEqual([]);
      printed.mockRestore();
    });

    it.each<[string, () => RedisOptions, RegExp]>([
      [
        'none of them is there',
        () => ({ sentinels: [{ host: '127.0.0.1', port: 1 }] }),
        /failed to connect to sentinel 127\.0\.0\.1:1 because/,
      ],
      [
        'none knows the primary',
        () => ({ name: 'nobody' }),
        /the sentinel at 127\.0\.0\.1:\d+ knows no primary "nobody"/,
      ],
    ])('is named in the error: %s', async (_what, options, message) => {
      const { locks } = await start({ connection: { ...set.connection, ...options() }, patienceMs: 0 });
      const error = await rejection<LockUnavailableError>(locks.acquire('x', { waitMs: 500 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(message);
    });

    it('wants a password: sentinelPassword', async () => {
      await using guarded = await SentinelSet.start({ sentinelPassword: 'pw-of-sentinels' });
      const { locks } = await start({ connection: guarded.connection });
      await (await locks.acquire('x')).release();
      const connection = { ...guarded.connection, sentinelPassword: 'wrong-5ecret' };
      const stranger = await start({ connection, patienceMs: 0 });
      const error = await rejection(stranger.locks.acquire('x', { waitMs: 500 }));
      expect(error.message).toMatch(/(NOAUTH|WRONGPASS).*Set sentinelPassword/);
      expect(error.message).not.toMatch(/5ecret|pw-of/);
      await Promise.all([locks.shutdown(0), stranger.locks.shutdown(0)]);
    });
  });
});
