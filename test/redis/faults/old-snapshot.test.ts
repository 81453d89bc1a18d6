import { setTimeout as sleep } from 'node:timers/promises';
import type { LockOwner, LockStore } from '../../../lib/kernel/store/lock-store.js';
import type { PushedGrant } from '../../../lib/kernel/store/message-health.js';
import { SYSTEM_CLOCK } from '../../../lib/kernel/util/clock.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { RestartQuarantineError } from '../../../lib/redis/script/restart-quarantine.js';
import { RedisJobStore } from '../../../lib/features/jobs/redis/redis-job-store.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { untilQueued, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { lockConnection } from '../../support/redis/lock-user.js';
import { useRedis } from '../../support/redis/redis-server.js';

/** Longer than the server has been running. */
const CAREFUL = { restartQuarantineMs: 600_000 };
const LONG_MS = 60_000;
const QUEUEING = { sentAt: 0, maxWaiters: 100 };

describe('a server that may have forgotten leases', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const fence = () => admin().get('lock:fence');

  const exclusive = { mode: 'exclusive' } as const;
  const permits = { mode: 'semaphore', permits: { count: 2, total: 2, isResized: false } } as const;
  const reader = { mode: 'read' } as const;
  const onePermit = { mode: 'semaphore', permits: { count: 1, total: 2, isResized: false } } as const;
  type Wants = Pick<LockOwner, 'mode' | 'permits'>;
  type Free = (store: RedisLockStore, holder: LockOwner, token: number) => Promise<boolean>;
  const frees: readonly (readonly [string, Wants, Wants, Free])[] = [
    ['a release', exclusive, exclusive, (store, holder) => store.release(holder)],
    ['a release of a permit', permits, onePermit, (store, holder) => store.release(holder)],
    ['a release of a reader', reader, exclusive, (store, holder) => store.release(holder)],
    ['a release whose minimum has ended', exclusive, exclusive, (store, holder) => store.retain(holder, { leftMs: 0 })],
    ['a downgrade', { mode: 'write' }, reader, (store, holder) => store.downgrade(holder, LONG_MS)],
    ['fewer permits', permits, onePermit, (store, holder) => store.lowerPermits(holder, 1)],
    ['more permits in all', permits, onePermit, (store, { resource }) => store.resize(resource, 3)],
    ['an operator', exclusive, exclusive, (store, { resource }, token) => store.forceRelease(resource, token)],
    [
      'an operator, of a permit',
      permits,
      onePermit,
      (store, { resource }, token) => store.forceRelease(resource, token),
    ],
    [
      'the end of a run',
      exclusive,
      exclusive,
      (store, holder, fencingToken) => new RedisJobStore(store).end(holder, { run: { fencingToken, outcome: 'ok' } }),
    ],
  ];

  it.each(frees)('grants nothing by %s, and continues from the last state', async (_, has, wants, free) => {
    const [careless, careful] = [await start(), await start(CAREFUL)];
    const holder = { resource: 'x', id: `${careless.store.clientId}/holder`, ...has };
    const waiter = { resource: 'x', id: `${careless.store.clientId}/waiter`, ...wants };
    const held = await careless.store.acquire(holder, LONG_MS);
    expect(await careless.store.acquire(waiter, LONG_MS, QUEUEING)).toMatchObject({ status: 'queued' });
    const before = await fence();

    expect(await free(careful.store, holder, 'fencingToken' in held ? held.fencingToken : 0)).toBe(true);
    expect(await fence()).toBe(before);
    expect((await careless.store.inspect('x')).waiters).toHaveLength(1);
    // A process that knows the server as well continues with the queue.
    expect(await careless.store.acquire(waiter, LONG_MS, QUEUEING)).toMatchObject({ status: 'granted' });
  });

  it('grants nothing where a lease was passed on in one step, and answers the release', async () => {
    const [careless, careful] = [await start(), await start(CAREFUL)];
    const [holder, waiter, next] = ['holder', 'waiter', 'next'].map((name) => ownerOf(careful, name));
    await careless.store.acquire(holder!, LONG_MS);
    await careless.store.acquire(waiter!, LONG_MS, QUEUEING);
    const { released, next: error } = await careful.store.rotate(holder!, next!, LONG_MS, QUEUEING);
    expect([released, error]).toEqual([true, expect.any(RestartQuarantineError)]);
    expect(await admin().exists('lock:{x}')).toBe(0);
  });

  it('has the next waiter ask at once, for it knows when it may', async () => {
    const [careless, careful] = [await start(), await start(CAREFUL)];
    const holder = ownerOf(careful, 'holder');
    await careless.store.acquire(holder, LONG_MS);
    // Its next keep would be in 15 s.
    const waits = careless.locks.acquire('x', { leaseMs: LONG_MS, waitMs: 12_000 });
    await untilQueued(careless, 'x', careless);
    await careful.store.release(holder);
    expect((await waits).isHeld()).toBe(true);
  });

  it('grants nothing by the release of a waiter that gives up', async () => {
    const [careless, careful] = [await start(), await start(CAREFUL)];
    await careless.store.acquire(ownerOf(careless, 'first'), LONG_MS);
    await careless.store.acquire(ownerOf(careless, 'second'), LONG_MS, QUEUEING);
    await careless.store.acquire(ownerOf(careless, 'third'), LONG_MS, QUEUEING);
    await admin().del('lock:{x}');
    await careful.store.release(ownerOf(careless, 'third'));
    expect(await admin().exists('lock:{x}')).toBe(0);
    await untilQueued(careless, 'x', careless);
  });
});

class RawStore extends RedisLockStore implements AsyncDisposable {
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function ownerOf({ store }: { readonly store: LockStore }, name: string): LockOwner {
  return { resource: 'x', id: `${store.clientId}/${name}`, mode: 'exclusive' };
}

describe('a server that was restarted from an old snapshot', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const QUARANTINE_MS = 2_000;
  const CAREFUL = { restartQuarantineMs: QUARANTINE_MS, defaults: { leaseMs: QUARANTINE_MS, waitMs: 60_000 } };
  const uptimeSeconds = async () => Number(/uptime_in_seconds:(\d+)/.exec(await admin().info('server'))![1]);

  /** Resolves when so many instances listen again: what is granted to the others is passed over. */
  async function restart(listeners: number): Promise<void> {
    await redis().kill();
    await redis().restart({ keepData: true });
    await eventually(async () => expect(await admin().pubsub('CHANNELS', 'lock:inbox:*')).toHaveLength(listeners));
  }

  it('grants nothing until all earlier leases have ended, and then continues with its queues', async () => {
    const [a, b, c, operator] = [
      await start(CAREFUL),
      await start(CAREFUL),
      await start(CAREFUL),
      await start(CAREFUL),
    ];
    const seats = { permits: 2 };
    const short = await a.locks.acquire('short', { leaseMs: QUARANTINE_MS / 2 });
    const long = await a.locks.acquire('long');
    const both = await a.locks.semaphore('seats', seats).acquire({ count: 2 });
    const giveUp = new AbortController();
    const waiting = [
      b.locks.acquire('short'),
      b.locks.acquire('long'),
      b.locks.semaphore('seats', seats).acquire({ count: 1 }),
    ];
    await untilQueued(operator, 'short', b);
    const given = rejection(c.locks.acquire('short', { signal: giveUp.signal }));
    await untilQueued(operator, 'short', b, c);
    await untilQueued(operator, 'long', b);
    await untilQueued(operator, 'seats', b);

    await admin().save();
    const fence = await admin().get('lock:fence');
    // Renewed all the time; the lease that the snapshot shows ends.
    await sleep(QUARANTINE_MS / 2);
    await restart(4);
    let granted = 0;
    for (const each of waiting) void each.then(() => granted++);
    giveUp.abort();
    await given;
    await Promise.all([
      operator.locks.operators.forceRelease('long', { fencingToken: long.fencingToken }),
      operator.locks.operators.forceRelease('seats', { fencingToken: both.fencingToken }),
    ]);
    // A grant would have arrived by then.
    for (let times = 0; times < 20; times++) await b.locks.inspect('short');
    expect([granted, await admin().get('lock:fence')]).toEqual([0, fence]);

    const got = await Promise.all(waiting);
    expect(await uptimeSeconds()).toBeGreaterThanOrEqual(QUARANTINE_MS / 1_000);
    expect([short, long, both].map((lease) => lease.isHeld())).toEqual([false, false, false]);
    expect(got.map((lease) => lease.isHeld())).toEqual([true, true, true]);
  });

  it.each([
    ['none', true],
    ['normal', false],
    ['pubsub', false],
  ] as const)(
    'may have a place that is older than a connection (%s): then the waiter asks again',
    async (killed, isEnough) => {
      const careless = await start();
      const terms = {
        keyPrefix: 'lock',
        instanceId: 'raw',
        leaseMs: QUARANTINE_MS,
        restartQuarantineMs: QUARANTINE_MS,
      };
      await using store = new RawStore({ ...terms, connection: lockConnection(redis().url) });
      const grants: PushedGrant[] = [];
      let connections = 0;
      store.listen({ granted: (grant) => grants.push(grant), reconnected: () => connections++ });
      await store.start(5_000);
      const [first, waiter, other] = [
        ownerOf(careless, 'first'),
        ownerOf({ store }, 'waiter'),
        ownerOf({ store }, 'other'),
      ];
      await careless.store.acquire(first, LONG_MS);
      // It is well by now.
      await eventually(() => store.acquire({ ...other, resource: 'other' }, QUARANTINE_MS));
      // A place is sent in whole milliseconds: in the millisecond of the connection, it looks older.
      await sleep(2);
      const sentAt = SYSTEM_CLOCK.now();
      await store.acquire(waiter, LONG_MS, { sentAt, maxWaiters: 10 });

      const before = connections;
      if (killed !== 'none') {
        await admin().call('CLIENT', 'KILL', 'TYPE', killed);
        await eventually(() => expect(connections).toBeGreaterThan(before));
        await eventually(() => store.acquire({ ...other, resource: 'another' }, QUARANTINE_MS));
      }
      await eventually(() => careless.store.release(first));
      await eventually(() => expect(grants).toHaveLength(1));
      expect(grants[0]!.sentAt).toBe(isEnough ? Math.floor(sentAt) : -Infinity);
    },
  );

  it('is ignored if a process without the option grants it', async () => {
    const [a, b, careless] = [await start(CAREFUL), await start(CAREFUL), await start()];
    const held = await a.locks.acquire('x');
    const waiting = b.locks.acquire('x');
    await untilQueued(careless, 'x', b);
    await admin().save();
    await restart(3);
    const { holders } = await careless.locks.inspect('x');
    expect(holders.map(({ instanceId }) => instanceId)).toEqual([a.instanceId]);
    await careless.locks.operators.forceRelease('x', { fencingToken: held.fencingToken });
    let granted = false;
    void waiting.then(() => (granted = true));
    expect((await careless.locks.inspect('x')).holders.map(({ instanceId }) => instanceId)).toEqual([b.instanceId]);
    for (let times = 0; times < 20; times++) await b.locks.inspect('x');
    expect(granted).toBe(false);

    const next = await waiting;
    expect(await uptimeSeconds()).toBeGreaterThanOrEqual(QUARANTINE_MS / 1_000);
    expect([held.isHeld(), next.isHeld(), await next.verify()]).toEqual([false, true, true]);
  });
});
