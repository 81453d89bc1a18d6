import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { eventually, rejection, untilAborted } from '../../support/expect/eventually.js';
import {
  expectNothingLeft,
  type LockInstance,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { take, type TakeOptions } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { TcpProxy } from '../../support/network/tcp-proxy.js';
import { track } from '../../support/expect/tracked.js';

const LONG = { leaseMs: 60_000, waitMs: 60_000 };
/** The holder, and the waiter behind it. */
const SCENES: [string, TakeOptions, TakeOptions][] = [
  ['a reader behind a writer', { mode: 'write' }, { mode: 'read' }],
  ['a writer behind a reader', { mode: 'read' }, { mode: 'write' }],
  ['one who wants permits', { permits: 3, count: 3 }, { permits: 3, count: 2 }],
];
const SHARED: [string, TakeOptions][] = [
  ['readers', { mode: 'read' }],
  ['holders of permits', { permits: 3 }],
];

describe('shared locks on a network and a Redis that fail', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const scene = async (held: TakeOptions, wanted: TakeOptions) => {
    const proxy = await TcpProxy.start(redis().port);
    const [a, far] = [await start(), await start({ connection: proxy.url })];
    const lease = await take(a.locks, 'x', { ...LONG, ...held });
    const waiting = track(take(far.locks, 'x', { ...LONG, ...wanted }));
    await untilQueued(a, 'x', far);
    return { proxy, a, far, lease, waiting };
  };
  const expectGranted = async ({ a, far, lease, waiting }: Awaited<ReturnType<typeof scene>>): Promise<void> => {
    await eventually(() => expect(waiting.state).toBe('fulfilled'));
    expect(waiting.value.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(await waiting.value.verify()).toBe(true);
    await waiting.value.release();
    await expectNothingLeft(admin(), a, far);
  };

  describe.each(SCENES)('%s', (_who, held, wanted) => {
    it('finds by a heartbeat that it was granted, when the message is lost', async () => {
      const world = await scene(held, wanted);
      await using _ = world.proxy;
      world.proxy.blackHole('toClient', 'subscriber');
      await world.lease.release();
      await eventually(() => expect(world.waiting.state).toBe('fulfilled'));
      world.proxy.heal();
      await expectGranted(world);
    });

    it('finds it when its connections are back', async () => {
      const world = await scene(held, wanted);
      await using _ = world.proxy;
      world.proxy.blackHole('toClient');
      await world.lease.release();
      world.proxy.cut();
      world.proxy.heal();
      await expectGranted(world);
    });

    it('is granted by a Redis that has forgotten the scripts and killed the connections meanwhile', async () => {
      const world = await scene(held, wanted);
      await using _ = world.proxy;
      await admin().script('FLUSH');
      await admin().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await admin().call('CLIENT', 'KILL', 'TYPE', 'pubsub', 'SKIPME', 'yes');
      await admin().script('FLUSH');
      await world.lease.release().catch(() => {}); // it is sent again until it is answered
      await expectGranted(world);
    });
  });

  it.each(SHARED)(
    'a restart without data: %s learn that they lost it, and tokens go on growing',
    async (_who, options) => {
      const instances = await Promise.all([1, 2].map(() => start({ defaults: { leaseMs: 1_500 } })));
      const leases: Lease[] = [];
      for (const { locks } of instances) leases.push(await take(locks, 'x', options));
      const signals = leases.map(({ signal }) => signal);
      await redis().kill();
      await redis().restart();
      await Promise.all(signals.map(untilAborted));
      expect(leases.map((lease) => lease.isHeld())).toEqual([false, false]);
      const { locks } = instances[0]!;
      const next = await eventually(() =>
        take(locks, 'x', options.permits ? { ...options, count: 3 } : { mode: 'write' }),
      );
      for (const lease of leases) expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
      for (const lease of leases) await lease.release();
      expect(await next.verify()).toBe(true);
      await next.release();
      await expectNothingLeft(admin(), ...instances);
    },
  );

  describe('out of memory', () => {
    const outOfMemory = async (work: () => Promise<void>): Promise<void> => {
      await admin().config('SET', 'maxmemory', '1');
      try {
        await work();
      } finally {
        await admin().config('SET', 'maxmemory', '0');
      }
    };

    it.each(SHARED)('%s keep what they have, whatever the others have, and can give it back', async (_who, options) => {
      const instances = (await Promise.all([1, 2, 3].map(() => start()))) as LockInstance[];
      const leases: Lease[] = [];
      // The key outlives the lease of the first ones.
      for (const [i, leaseMs] of [2_000, 5_000, 60_000].entries()) {
        leases.push(await take(instances[i]!.locks, 'x', { ...options, leaseMs }));
      }
      await outOfMemory(async () => {
        const { locks } = instances[0]!;
        const more = await rejection(take(locks, 'y', { ...options, waitMs: 100 }));
        expect(more).toBeInstanceOf(LockUnavailableError);
        expect(more.message).toMatch(/OOM.*Redis is out of memory/);
        for (const lease of leases) await lease.extend();
        await leases[0]!.extend(1_000);
        for (const lease of leases) expect(await lease.verify()).toBe(true);
        for (const lease of leases) await lease.release();
      });
      await expectNothingLeft(admin(), ...instances);
    });

    it('some permits can be released, and the next waiter gets them', async () => {
      const [a, b] = [await start(), await start()];
      const lease = await take(a.locks, 'x', { ...LONG, permits: 3, count: 3 });
      const waiting = take(b.locks, 'x', { ...LONG, permits: 3, waitMs: 20_000 });
      await eventually(async () => expect((await a.locks.inspect('x')).waiters).toHaveLength(1));
      await outOfMemory(async () => {
        await lease.releasePermits(1);
        const next = await waiting;
        expect([await lease.verify(), await next.verify()]).toEqual([true, true]);
        const { holders } = await a.locks.inspect('x');
        expect(holders.map(({ permits }) => permits)).toEqual([2, 1]);
        await next.release();
        await lease.release();
      });
      await expectNothingLeft(admin(), a, b);
    });

    it('a writer can become a reader, and an operator can end a lease', async () => {
      const [a, b] = [await start(), await start()];
      const lease = await a.locks.acquire('x', { ...LONG, mode: 'write' });
      await outOfMemory(async () => {
        await lease.downgrade();
        expect(await lease.verify()).toBe(true);
        const { fencingToken } = lease;
        expect(await b.locks.operators.forceRelease('x', { fencingToken })).toBe(true);
      });
      await expectNothingLeft(admin(), a, b);
    });

    it.each(SCENES)('%s is granted by the release', async (_who, held, wanted) => {
      const world = await scene(held, wanted);
      await using _ = world.proxy;
      await outOfMemory(async () => {
        await world.lease.release();
        await eventually(() => expect(world.waiting.state).toBe('fulfilled'));
      });
      await expectGranted(world);
    });
  });
});
