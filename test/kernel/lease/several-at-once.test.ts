import { inspect } from 'node:util';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { gate, track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import {
  answered,
  brokenAfter,
  executedWhen,
  failing,
  type Fate,
  lostOnTheWay,
  repliedWhen,
  replyLost,
} from '../../support/world/scripted-store.js';

const LEASE_MS = 30_000;
const ALL = ['x', 'y', 'z'];

describe('several resources of one call', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  /** The commands since the last reset. */
  const sentBy = ({ store }: Instance): string[] =>
    store.commands.splice(0).map(({ verb, resource }) => `${verb} ${resource}`);
  const holdersOf = async (resource: string): Promise<string[]> =>
    (await b.locks.inspect(resource)).holders.map(({ instanceId }) => instanceId);
  const gate = (): { promise: Promise<void>; open: () => void } => {
    let open!: () => void;
    return { promise: new Promise((resolve) => (open = resolve)), open };
  };

  it('take one round trip if all are free, and one for the release', async () => {
    const acquiring = a.locks.acquire(['z', 'x', 'y']);
    expect(sentBy(a)).toEqual(['acquire x', 'acquire y', 'acquire z']);
    const lease = await acquiring;
    expect(lease.resources).toEqual(ALL);
    expect(lease.isHeld()).toBe(true);
    expect(await lease.verify()).toBe(true);
    sentBy(a);
    const release = lease.release();
    expect(sentBy(a)).toEqual(['release z', 'release y', 'release x']);
    await release;
    expect(world.server.isEmpty).toBe(true);
    expect(a.locks.stats()).toEqual({ resources: 0, leases: 0, orphanReleases: 0, lateGrants: 0, alarms: 0 });
  });

  it.each(['exclusive', 'reentrant', 'read', 'write'] as const)('are normal leases, in mode %s', async (mode) => {
    await a.locks.using(ALL, { mode }, async (lease) => {
      expect(lease.mode).toBe(mode);
      for (const name of ALL) {
        expect(lease.fencingTokenOf(name)).toBe((await b.locks.inspect(name)).holders[0]!.fencingToken);
        expect(a.locks.deps.watchdog.holdersOf(name)).toHaveLength(1);
        expect(a.locks.current(name)?.isHeld()).toBe(true);
      }
      await world.clock.advance(2 * LEASE_MS);
      expect(lease.isHeld()).toBe(true);
    });
    expect(eventsOf(a, 'acquired').map(({ resource, attempts }) => [resource, attempts])).toEqual([
      ['x', 1],
      ['y', 1],
      ['z', 1],
    ]);
    expect(eventsOf(a, 'released')).toHaveLength(3);
    expect(world.server.isEmpty).toBe(true);
  });

  it('keep the group of each of them in its label', async () => {
    const c = world.instance('c', { labelGroups: true });
    const lease = await c.locks.acquire(['account:1', 'order:1'], { label: { run: 7 } });
    const labelOf = async (name: string) => (await b.locks.inspect(name)).holders[0]!.label;
    expect([await labelOf('account:1'), await labelOf('order:1')]).toEqual([
      { run: 7, group: 'account' },
      { run: 7, group: 'order' },
    ]);
    await lease.release();
  });

  it('wait for the first one that is taken, and hold none after it', async () => {
    const x = await b.locks.acquire('x');
    const acquiring = track(a.locks.acquire(ALL));
    await settle();
    expect(sentBy(a)).toEqual(['acquire x', 'acquire y', 'acquire z', 'release y', 'release z']);
    expect([world.server.listWaiters('x').length, await holdersOf('y'), await holdersOf('z')]).toEqual([1, [], []]);
    await x.release();
    await settle();
    expect(sentBy(a)).toEqual(['acquire y', 'acquire z']);
    await acquiring.value.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('keep those before the one that is taken, and continue from there', async () => {
    const y = await b.locks.acquire('y');
    const acquiring = track(a.locks.acquire(ALL, { waitMs: 3 * LEASE_MS }));
    await settle();
    expect(sentBy(a)).toEqual([
      'acquire x',
      'acquire y',
      'acquire z',
      'release z',
      'acquire y',
      'acquire z',
      'release z',
    ]);
    expect([await holdersOf('x'), await holdersOf('y'), await holdersOf('z')]).toEqual([['a'], ['b'], []]);
    expect(world.server.listWaiters('y')).toHaveLength(1);
    await world.clock.advance(2 * LEASE_MS);
    sentBy(a);
    await y.release();
    await settle();
    expect(sentBy(a)).toEqual(['acquire z']);
    expect(acquiring.value.isHeld()).toBe(true);
    await acquiring.value.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('request the others once, not with each heartbeat', async () => {
    a.store.keepsNoPlaces();
    const x = await b.locks.acquire('x');
    const acquiring = track(a.locks.acquire(ALL, { waitMs: LEASE_MS }));
    await world.clock.advance(10_000);
    const asked = a.store.sent('acquire').map(({ resource }) => resource);
    expect(asked.slice(0, 3)).toEqual(ALL);
    expect(new Set(asked.slice(3))).toEqual(new Set(['x']));
    await x.release();
    await settle();
    await acquiring.value.release();
  });

  it('never deadlock', async () => {
    const transfers = [1, 2, 3, 4, 5].flatMap(() => [
      track(a.locks.using(['x', 'y', 'z'], undefined, async () => {})),
      track(b.locks.using(['z', 'y'], undefined, async () => {})),
      track(b.locks.using(['x', 'z'], undefined, async () => {})),
    ]);
    await world.clock.advance(8_000);
    expect(transfers.map(({ state }) => state)).toEqual(Array(15).fill('fulfilled'));
    expect(world.server.isEmpty).toBe(true);
  });

  it('are requested 256 at a time', async () => {
    const names = Array.from({ length: 300 }, (_, index) => `r${100 + index}`);
    const { promise, open } = gate();
    a.store.next('acquire', ...names.map(() => repliedWhen(promise)));
    const acquiring = track(a.locks.acquire(names));
    await settle();
    expect(sentBy(a)).toHaveLength(256);
    open();
    await settle();
    expect(sentBy(a)).toHaveLength(44);
    await acquiring.value.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('are granted all or none if the call does not wait', async () => {
    expect(await (await a.locks.tryAcquire(ALL))?.verify()).toBe(true);
    expect(sentBy(a).slice(0, 3)).toEqual(['acquire x', 'acquire y', 'acquire z']);
    expect(await b.locks.tryAcquire(['w', 'x', 'y'])).toBeNull();
    expect(sentBy(b)).toEqual(['acquire w', 'acquire x', 'acquire y', 'acquire x', 'acquire y', 'release w']);
    expect(await holdersOf('w')).toEqual([]);
  });

  it('wait their turn if this process holds or waits for them', async () => {
    const y = await a.locks.acquire('y');
    sentBy(a);
    const acquiring = track(a.locks.acquire(ALL));
    await settle();
    expect(sentBy(a)).toEqual(['acquire x']);
    await y.release();
    await settle();
    expect(acquiring.state).toBe('fulfilled');
    await acquiring.value.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('are entered again if this context has entered them', async () => {
    await a.locks.using('y', { mode: 'reentrant' }, async () => {
      sentBy(a);
      await a.locks.using(ALL, { mode: 'reentrant' }, async () => {
        expect(sentBy(a)).toEqual(['acquire x', 'setDepth y', 'acquire z']);
      });
    });
    expect(world.server.isEmpty).toBe(true);
  });

  it('precede calls of this process that ask while the command is pending', async () => {
    const { promise, open } = gate();
    a.store.next('acquire', ...ALL.map(() => repliedWhen(promise)));
    const several = track(a.locks.acquire(ALL));
    const order: string[] = [];
    const later = a.locks.using('y', undefined, async () => void order.push('later'));
    await settle();
    open();
    await settle();
    expect(several.state).toBe('fulfilled');
    order.push('several');
    await several.value.release();
    await later;
    expect(order).toEqual(['several', 'later']);
    expect(world.server.isEmpty).toBe(true);
  });

  it('report their holder to a call that waits behind them in this process', async () => {
    const lease = await a.locks.acquire(ALL);
    const waiting = track(a.locks.acquire('y', { waitMs: 500 }));
    await world.clock.advance(500);
    expect(waiting.error).toMatchObject({ code: 'LOCK_TIMEOUT', holders: [{ instanceId: 'a' }] });
    await lease.release();
  });

  describe('leave nothing behind', () => {
    const unanswered: [string, Fate][] = [
      ['whose command is lost', lostOnTheWay],
      ['whose answer is lost', replyLost],
      ['whose connection breaks after the command', brokenAfter],
      ['whose command fails, perhaps executed', failing('unknown')],
      ['whose command is not executed', failing('notExecuted')],
    ];

    it.each(unanswered)('%s: they are requested again', async (_what, fate) => {
      a.store.next('acquire', ...ALL.map(() => fate));
      const acquiring = track(a.locks.acquire(ALL));
      await world.clock.advance(2_500);
      expect(acquiring.state).toBe('fulfilled');
      expect(await acquiring.value.verify()).toBe(true);
      await acquiring.value.release();
      expect(world.server.isEmpty).toBe(true);
      await settle();
      expect(a.locks.stats()).toMatchObject({ resources: 0, leases: 0, orphanReleases: 0 });
    });

    it.each(unanswered)('%s, when the call does not wait', async (_what, fate) => {
      a.store.next('acquire', ...ALL.map(() => fate));
      const acquiring = track(a.locks.tryAcquire(ALL));
      await world.clock.advance(2_500);
      expect(acquiring.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', resource: 'x' });
      expect(world.server.isEmpty).toBe(true);
      expect(a.locks.stats()).toMatchObject({ resources: 0, leases: 0, orphanReleases: 0 });
    });

    it.each<[string, (open: Promise<void>) => Fate]>([
      ['is executed', executedWhen],
      ['is answered', repliedWhen],
    ])('when the command %s after the call was aborted', async (_when, fate) => {
      const { promise, open } = gate();
      a.store.next('acquire', ...ALL.map(() => fate(promise)));
      const controller = new AbortController();
      const acquiring = track(a.locks.acquire(ALL, { signal: controller.signal }));
      await settle();
      controller.abort();
      await settle();
      expect(acquiring.error).toMatchObject({ code: 'LOCK_ABORTED' });
      open();
      await settle();
      expect(world.server.isEmpty).toBe(true);
      expect(a.locks.stats()).toMatchObject({ resources: 0, leases: 0, orphanReleases: 0 });
    });

    it('when the call times out before the command is executed', async () => {
      const { promise, open } = gate();
      a.store.next('acquire', ...ALL.map(() => executedWhen(promise)));
      const acquiring = track(a.locks.acquire(ALL, { waitMs: 300 }));
      await world.clock.advance(300);
      expect(acquiring.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', resource: 'x' });
      open();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('when the command is executed while the next attempt holds the same parts', async () => {
      const { promise, open } = gate();
      a.store.next('acquire', ...ALL.map(() => executedWhen(promise)));
      const acquiring = track(a.locks.acquire(ALL));
      await world.clock.advance(2_500);
      const lease = acquiring.value;
      open();
      await settle();
      expect(await lease.verify()).toBe(true);
      await lease.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('when the reply arrives after the lease that it grants', async () => {
      const { promise, open } = gate();
      a.store.next('acquire', ...ALL.map(() => repliedWhen(promise)));
      const acquiring = track(a.locks.acquire(ALL, { leaseMs: 500, attemptTimeoutMs: 5_000 }));
      await world.clock.advance(600);
      open();
      await world.clock.advance(2_000);
      expect(await acquiring.value.verify()).toBe(true);
      await acquiring.value.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('when the application shuts down while the command is pending', async () => {
      const { promise, open } = gate();
      a.store.next('acquire', ...ALL.map(() => repliedWhen(promise)));
      const acquiring = track(a.locks.acquire(ALL));
      await settle();
      const closed = a.locks.shutdown(1_000);
      open();
      await world.clock.advance(2_000);
      await closed;
      expect(acquiring.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
      expect(world.server.isEmpty).toBe(true);
    });
  });

  it('are released if the application shuts down between the parts', async () => {
    let closed: Promise<void> | undefined;
    const c = world.instance('c', {
      observers: [({ type }) => void (type === 'acquired' && (closed ??= c.locks.shutdown(1_000)))],
    });
    await expect(c.locks.acquire(ALL)).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN', resource: 'y' });
    await world.clock.advance(2_000);
    await closed;
    expect(world.server.isEmpty).toBe(true);
  });

  it('name the one that Redis refuses', async () => {
    a.store.next('acquire', answered, failing('refused', 'NOPERM'), answered, failing('refused', 'NOPERM'));
    await expect(a.locks.acquire(ALL)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', resource: 'y' });
    await settle();
    expect([await holdersOf('x'), await holdersOf('z')]).toEqual([[], []]);
  });

  it('have their minimum, once the call has all of them', async () => {
    const lease = await a.locks.acquire(ALL, { minHoldMs: 1_000 });
    await lease.release();
    expect(await b.locks.tryAcquire('z')).toBeNull();
    await world.clock.advance(1_100);
    expect(await b.locks.tryAcquire('z')).not.toBeNull();
  });

  describe('in several slots of a cluster', () => {
    beforeEach(() => {
      for (const { store } of [a, b]) store.fenceOf = (resource) => resource;
    });

    it('return locks behind one that is taken, before they wait', async () => {
      const y = await b.locks.acquire('y');
      const acquiring = track(a.locks.acquire(ALL));
      await settle();
      expect(a.store.sent('release').map(({ resource }) => resource)).toContain('z');
      expect([await holdersOf('x'), await holdersOf('z')]).toEqual([['a'], []]);
      expect(world.server.listWaiters('y')).toHaveLength(1);
      await y.release();
      await settle();
      await acquiring.value.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('return the others if the first one is taken', async () => {
      const x = await b.locks.acquire('x');
      const acquiring = track(a.locks.acquire(ALL, { waitMs: 1_000 }));
      await settle();
      expect([await holdersOf('y'), await holdersOf('z')]).toEqual([[], []]);
      await world.clock.advance(1_000);
      expect(acquiring.error).toMatchObject({ code: 'LOCK_TIMEOUT', resource: 'x' });
      await x.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('return locks behind the awaited one, though another node does not answer', async () => {
      const x = await b.locks.acquire('x');
      a.store.nextFor('z', lostOnTheWay);
      const acquiring = track(a.locks.acquire(ALL));
      await world.clock.advance(1_100);
      expect(world.server.listWaiters('x')).toEqual(['a']);
      expect(await holdersOf('y')).toEqual([]);
      await x.release();
      await settle();
      expect(acquiring.state).toBe('fulfilled');
      await acquiring.value.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('are kept if a reply that makes the call wait is overtaken by its grant, and by its next request', async () => {
      const [overtaken, slow] = [gate(), gate()];
      const x = await b.locks.acquire('x');
      a.store.nextFor('z', lostOnTheWay);
      const acquiring = track(a.locks.acquire(ALL));
      await world.clock.advance(900);
      a.store.nextFor('x', repliedWhen(overtaken.promise));
      await world.clock.advance(200);
      expect(world.server.listWaiters('x')).toEqual(['a']);
      a.store.next('acquire', answered, repliedWhen(slow.promise)); // y, z
      await x.release(); // by a message, so the call goes on with y and z
      await settle();
      overtaken.open();
      await settle();
      slow.open();
      await settle();
      expect(acquiring.state).toBe('fulfilled');
      expect(a.store.sent('acquire').filter(({ resource }) => resource === 'z')).toHaveLength(2);
      await acquiring.value.release();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it.each<[string, Fate]>([
      ['does not answer', replyLost],
      ['breaks', brokenAfter],
      ['executes nothing', failing('notExecuted')],
    ])('leave nothing behind if one node %s', async (_what, fate) => {
      for (const name of ALL) {
        a.store.nextFor(name, fate);
        const acquiring = track(a.locks.acquire(ALL));
        await world.clock.advance(4_000);
        expect(await acquiring.value.verify()).toBe(true);
        await acquiring.value.release();
        await settle();
        expect(world.server.isEmpty).toBe(true);
        expect(a.locks.stats()).toMatchObject({ resources: 0, leases: 0, orphanReleases: 0 });
      }
    });

    it('are requested one after another if the call does not wait: two calls could refuse each other', async () => {
      await b.locks.acquire('x');
      expect(await a.locks.tryAcquire(ALL)).toBeNull();
      expect(sentBy(a)).toEqual(['acquire x']);
    });

    it('never deadlock', async () => {
      const transfers = [1, 2, 3, 4, 5].flatMap(() => [
        track(a.locks.using(['x', 'y', 'z'], undefined, async () => {})),
        track(b.locks.using(['z', 'y'], undefined, async () => {})),
        track(b.locks.using(['x', 'z'], undefined, async () => {})),
      ]);
      await world.clock.advance(8_000);
      expect(transfers.map(({ state }) => state)).toEqual(Array(15).fill('fulfilled'));
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });
  });
});

describe('several resources at once', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('are acquired in one order, each once, in whatever order they are named', async () => {
    const lease = await a.locks.acquire(['to', 'from', 'to']);
    expect(lease.resources).toEqual(['from', 'to']);
    expect(lease.resource).toBe('from, to');
    expect(a.store.sent('acquire').map(({ resource }) => resource)).toEqual(['from', 'to']);
  });

  it('each have a token of their own', async () => {
    const lease = await a.locks.acquire(['x', 'y']);
    expect(lease.fencingTokenOf('x')).toBeLessThan(lease.fencingTokenOf('y'));
    expect(lease.fencingTokenOf('y')).toBe(lease.fencingToken);
    expect(() => lease.fencingTokenOf('z')).toThrow('This lease does not hold "z". It holds "x", "y".');
    const single = await a.locks.acquire('single');
    expect(single.fencingTokenOf('single')).toBe(single.fencingToken);
    expect(() => single.fencingTokenOf('x')).toThrow('This lease does not hold "x"');
  });

  it('form one lease: the largest token, the shortest time, one release', async () => {
    const lease = await a.locks.acquire(['x', 'y', 'z']);
    const tokens = (await Promise.all(lease.resources.map((name) => a.locks.inspect(name)))).map(
      ({ holders }) => holders[0]!.fencingToken,
    );
    expect(lease.fencingToken).toBe(Math.max(...tokens));
    expect(lease.isHeld()).toBe(true);
    expect(await lease.verify()).toBe(true);
    await lease.release();
    expect(lease.isHeld()).toBe(false);
    expect(world.server.isEmpty).toBe(true);
  });

  it('wait no longer than waitMs in all', async () => {
    const x = await b.locks.acquire('x');
    await b.locks.acquire('y');
    const acquiring = track(a.locks.acquire(['x', 'y'], { waitMs: 1_000 }));
    await world.clock.advance(900);
    await x.release();
    await world.clock.advance(99);
    expect(acquiring.state).toBe('pending');
    await world.clock.advance(1);
    expect(acquiring.state).toBe('rejected');
  });

  it('renew the acquired ones while they wait for the rest', async () => {
    const y = await b.locks.acquire('y');
    const acquiring = track(a.locks.acquire(['x', 'y'], { leaseMs: 300, waitMs: 20_000 }));
    await world.clock.advance(5_000);
    await y.release();
    await settle();
    expect(acquiring.value.isHeld()).toBe(true);
  });

  it('are lost as soon as one of them is lost', async () => {
    const lease = await a.locks.acquire(['x', 'y'], { leaseMs: 3_000 });
    const reasons: unknown[] = [];
    lease.signal.addEventListener('abort', () => reasons.push(lease.signal.reason));
    world.server.lose('y');
    await world.clock.advance(1_000);
    expect(reasons).toMatchObject([{ code: 'LEASE_LOST', resource: 'y', reason: 'takenOver' }]);
    expect(lease.isHeld()).toBe(false);
    expect(lease.remainingMs()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(/"y"/);
    await lease.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('are all released even if one release fails', async () => {
    const lease = await a.locks.acquire(['x', 'y']);
    a.store.next('release', failing('refused'));
    await expect(lease.release()).rejects.toMatchObject({ operation: 'release' });
    expect([(await b.locks.inspect('x')).mode, (await b.locks.inspect('y')).mode]).toContain(null);
    expect(a.store.sent('release').map(({ resource }) => resource)).toEqual(expect.arrayContaining(['x', 'y']));
  });

  it('are extended together', async () => {
    const lease = await a.locks.acquire(['x', 'y'], { watchdog: false, leaseMs: 1_000 });
    await lease.extend(5_000);
    expect(lease.remainingMs()).toBe(5_000 - 52);
  });

  describe('without a watchdog, or for a limited time,', () => {
    const both = (options: LockOptions) =>
      track(a.locks.acquire(['x', 'y'], { waitMs: 60_000, leaseMs: 1_000, ...options }));

    it('last as long as requested from the last grant on, however long the wait was', async () => {
      const other = await b.locks.acquire('y');
      const waiting = both({ watchdog: false });
      await world.clock.advance(5_300);
      await other.release();
      await settle();
      const lease = waiting.value!;
      expect(lease.remainingMs()).toBeGreaterThan(950);
      await world.clock.advance(950);
      lease.assertHeld();
      // Neither of them is renewed from then on.
      await world.clock.advance(60);
      expect(lease.isHeld()).toBe(false);
      expect((await b.locks.inspect('x')).holders).toEqual([]);
    });

    it('end at the end of maxHoldMs, counted from the last grant', async () => {
      const other = await b.locks.acquire('y');
      const waiting = both({ maxHoldMs: 3_000 });
      await world.clock.advance(5_300);
      await other.release();
      await settle();
      const lease = waiting.value!;
      await world.clock.advance(2_990);
      lease.assertHeld();
      await world.clock.advance(20);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: 'maxHold' }));
    });

    it('cost no additional command if they are free', async () => {
      expect((await a.locks.acquire(['x', 'y'], { watchdog: false })).isHeld()).toBe(true);
      expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'acquire']);
    });

    it('are released if the lease of the first one cannot start again', async () => {
      const other = await b.locks.acquire('y');
      const waiting = both({ watchdog: false });
      await world.clock.advance(500);
      a.store.next('renew', failing('refused'));
      await other.release();
      await settle();
      expect(waiting.error).toBeInstanceOf(LockUnavailableError);
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('do not change a lease that the context has entered again', async () => {
      await a.locks.using('x', { mode: 'reentrant' }, async () => {
        const lease = await a.locks.acquire(['x', 'y'], { mode: 'reentrant', watchdog: false, leaseMs: 1_000 });
        await world.clock.advance(60_000);
        expect(a.locks.current('x')?.isHeld()).toBe(true);
        await lease.release();
      });
    });
  });

  describe('with tokens of several orders, as on a cluster,', () => {
    beforeEach(() => void (a.store.fenceOf = (resource) => `fence of ${resource}`));

    it('have no token in common, because it could exceed that of the next holder of one of them', async () => {
      const lease = await a.locks.acquire(['x', 'y']);
      expect(() => lease.fencingToken).toThrow(
        'The tokens of "x", "y" cannot be compared: Redis Cluster numbers the leases of each slot separately. ' +
          'Send the token of the resource that a write changes: fencingTokenOf(resource).',
      );
      expect(lease.fencingTokenOf('x')).toBeLessThan(lease.fencingTokenOf('y'));
      expect((await a.locks.acquire(['single'])).fencingToken).toBeGreaterThan(0);
    });

    it('can still be printed, each with its token', async () => {
      const lease = await a.locks.acquire(['x', 'y'], { leaseMs: 1_000 });
      const fencingTokens = { x: lease.fencingTokenOf('x'), y: lease.fencingTokenOf('y') };
      expect(JSON.parse(JSON.stringify({ lease }))).toEqual({
        lease: { resource: 'x, y', mode: 'exclusive', fencingTokens, isHeld: true, remainingMs: 988 },
      });
      expect(inspect(lease)).toContain(`fencingTokens: { x: ${fencingTokens.x}, y: ${fencingTokens.y} }`);
      await lease.release();
      expect(eventsOf(a, 'released').map(({ resource, fencingToken }) => [resource, fencingToken])).toEqual([
        ['y', fencingTokens.y],
        ['x', fencingTokens.x],
      ]);
    });
  });

  it('of one name are a plain lease', async () => {
    const lease = await a.locks.acquire(['x', 'x']);
    expect(lease.resource).toBe('x');
  });
});

/** The connection breaks, and what was written to it arrives later, after commands of the next connection. */
function brokenBefore(arrival: Promise<void>): Fate {
  return (execute) => {
    void arrival.then(execute).catch(() => {});
    return Promise.reject(new LockStoreError('unknown', 'the connection broke before the reply'));
  };
}

describe('a command that shortens a lease, and arrives late on a connection that was considered dead', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;
  let arrival: ReturnType<typeof gate>;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
    arrival = gate();
  });

  /** It was renewed since. Then the old command arrives, and the lock ends with it. */
  async function arrivesLate(lease: Lease): Promise<void> {
    await world.clock.advance(500);
    expect(lease.isHeld()).toBe(true);
    a.store.next('renew', () => new Promise(() => {}));
    arrival.open();
    await settle();
    await world.clock.advance(1_500);
    const other = track(b.locks.acquire('stock', { waitMs: 100 }));
    await world.clock.advance(100);
    expect([lease.isHeld(), other.state]).not.toEqual([true, 'fulfilled']);
  }

  it('allows no second holder after an extension', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
    await world.clock.advance(9_900);
    a.store.next('renew', brokenBefore(arrival.opened));
    await expect(lease.extend(1_000)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    await arrivesLate(lease);
  });

  it('does not cost the lease: it is renewed often enough to be trusted', async () => {
    const lease = await a.locks.acquire('stock', { leaseMs: 30_000 });
    a.store.next('renew', brokenBefore(arrival.opened));
    await lease.extend(1_000).catch(() => {});
    await lease.extend(30_000);
    for (let second = 0; second < 20; second++) {
      await world.clock.advance(1_000);
      expect(lease.isHeld()).toBe(true);
      expect(lease.remainingMs()).toBeLessThanOrEqual(1_000);
    }
  });
});
