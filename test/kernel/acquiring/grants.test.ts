import type { LockBusyError } from '../../../lib/kernel/api/busy-errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { fixedInterval } from '../../../lib/kernel/api/retry.js';
import { LateGrants } from '../../../lib/kernel/store/orphan-releases.js';
import { LockStoreError } from '../../../lib/kernel/store/store-error.js';
import { Deferred } from '../../../lib/kernel/util/promises.js';
import { rejection } from '../../support/expect/eventually.js';
import { gate, track, type Tracked } from '../../support/expect/tracked.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { QuorumWorld } from '../../support/world/quorum-world.js';
import {
  answered,
  deliveredWhen,
  executedWhen,
  failing,
  grantLost,
  lostOnTheWay,
} from '../../support/world/scripted-store.js';

const LEASE_MS = 3_000;
const DEADLINE_MS = LEASE_MS - 32;

let world: LockWorld;
let a: Instance;
let b: Instance;

beforeEach(() => {
  world = new LockWorld();
  a = world.instance('a');
  b = world.instance('b');
});

describe('a grant message', () => {
  const terms: LockOptions = { leaseMs: LEASE_MS, waitMs: Infinity };
  const wait = (options: LockOptions = {}) => track(b.locks.acquire('stock', { ...terms, ...options }));
  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);

  it('starts the lease at once: without a command, and valid from the stamp of the command that queued it', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await world.clock.advance(600);
    await holder.release();
    await settle();
    expect(verbs(b)).toEqual(['acquire']);
    expect(waiting.value.remainingMs()).toBe(DEADLINE_MS - 600);
    expect(waiting.value.fencingToken).toBe(b.store.grants[0]!.fencingToken);
    expect(eventsOf(b, 'acquired')).toMatchObject([{ waitedMs: 600, attempts: 1 }]);
  });

  it('counts from the last heartbeat, and the first renewal is a third of the lease later', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await world.clock.advance(1_900);
    const { sentAt } = b.store.sent('keep').at(-1)!;
    await holder.release();
    await settle();
    expect(b.store.grants[0]!.sentAt).toBe(Math.floor(sentAt));
    expect(waiting.value.remainingMs()).toBe(Math.floor(sentAt) + DEADLINE_MS - world.clock.now());
    await world.clock.advance(1_000);
    expect(b.store.sent('renew')[0]!.sentAt).toBe(Math.floor(sentAt) + 1_000);
  });

  it('never makes the lease longer than the lock in the store', async () => {
    const holder = await a.locks.acquire('stock');
    const stalled = gate();
    b.store.next('acquire', executedWhen(stalled.opened));
    const waiting = wait({ attemptTimeoutMs: 2_000 });
    await world.clock.advance(700);
    stalled.open(); // sent 700 ms ago
    await settle();
    await holder.release();
    await settle();
    expect(waiting.value.remainingMs()).toBe(DEADLINE_MS - 700);
    expect((await a.locks.inspect('stock')).ttlMs).toBe(LEASE_MS);
  });

  describe('leads to another request instead of a lease', () => {
    it.each([
      ['when less than half of it is left', 1_490],
      ['when all of it is over', DEADLINE_MS],
      ['when the lock in the store is over', LEASE_MS + 10],
    ])('%s', async (_, lateMs) => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      const message = gate();
      b.store.nextGrants(deliveredWhen(message.opened));
      b.store.fates.acquire = lostOnTheWay; // a heartbeat would find it
      await holder.release();
      await world.clock.advance(lateMs);
      expect(waiting.state).toBe('pending');
      const commands = b.store.sent('acquire').length;
      b.store.fates.acquire = answered;
      message.open();
      await settle();
      expect(b.store.sent('acquire').length).toBe(commands + 1);
      await world.clock.advance(3_000);
      expect(waiting.value.isHeld()).toBe(true);
      expect(b.store.sent('acquire').at(-1)!.owner).toBe(b.store.sent('acquire')[0]!.owner);
    });

    it('when the lease is a fixed one, which must have the requested length', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait({ watchdog: false });
      await world.clock.advance(600);
      await holder.release();
      await settle();
      expect(verbs(b)).toEqual(['acquire', 'acquire']);
      expect(waiting.value.remainingMs()).toBe(DEADLINE_MS);
      expect(waiting.value.fencingToken).toBe(b.store.grants[0]!.fencingToken);
    });

    it('when its stamp is from the future', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      b.store.nextGrants(grantLost);
      await holder.release();
      await settle();
      b.store.deliver({ ...b.store.grants[0]!, sentAt: world.clock.now() + 1 });
      await settle();
      expect(verbs(b)).toEqual(['acquire', 'acquire']);
      expect(waiting.value.remainingMs()).toBe(DEADLINE_MS);
    });
  });

  it('is replaced by the next heartbeat if it is lost', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await settle();
    b.store.nextGrants(grantLost);
    await holder.release();
    await world.clock.advance(1_250);
    expect(waiting.value.isHeld()).toBe(true);
    expect(b.store.sent('acquire')).toHaveLength(2);
  });

  describe('to a caller that gave up', () => {
    /** Its question is on its way still, and reaches the store after the withdrawal; the reply never comes. */
    async function departed() {
      const holder = await a.locks.acquire('stock');
      const arrival = new Deferred<void>();
      b.store.next('acquire', (execute) => arrival.promise.then(execute).then(() => new Promise<never>(() => {})));
      const waiting = wait({ waitMs: 500 });
      await world.clock.advance(600);
      expect(waiting.state).toBe('rejected');
      arrival.resolve();
      await settle();
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      const released = b.store.sent('release').length;
      return { holder, released };
    }

    it('is returned, once', async () => {
      const { holder, released } = await departed();
      const next = track(a.locks.acquire('stock', { waitMs: 10_000, strictOrder: true }));
      await settle();
      await holder.release();
      await settle();
      for (let i = 0; i < 100; i++) b.store.deliver(b.store.grants[0]!);
      await settle();
      expect(b.store.sent('release')).toHaveLength(released + 1);
      expect(next.value.isHeld()).toBe(true);
    });

    it('is not expected forever', async () => {
      await departed();
      for (let i = 0; i < 40; i++) {
        b.store.next('acquire', lostOnTheWay);
        const call = track(b.locks.acquire(`order:${i}`, { ...terms, waitMs: 100 }));
        await world.clock.advance(1_000);
        expect(call.state).toBe('rejected');
      }
      expect(b.locks.stats().lateGrants).toBeLessThan(12);
    });
  });

  describe('has no effect', () => {
    it('when it comes again while the lease lasts', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      await holder.release();
      await settle();
      b.store.deliver(b.store.grants[0]!);
      await settle();
      expect(waiting.value.isHeld()).toBe(true);
      expect(verbs(b)).toEqual(['acquire']);
    });

    it('when it is forged', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      const { fencingToken } = holder;
      const forged = { resource: 'stock', fencingToken, sentAt: world.clock.now(), isFor: () => false };
      b.store.deliver(forged);
      b.store.deliver({ ...forged, resource: 'never heard of' });
      await world.clock.advance(500);
      expect(waiting.state).toBe('pending');
      expect(b.store.sent('release')).toEqual([]);
      expect(await holder.verify()).toBe(true);
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      expect(b.events).toMatchObject([{ type: 'waiting' }]);
    });
  });
});

describe('a grant', () => {
  const terms: LockOptions = { leaseMs: 3_000, waitMs: Infinity };
  const wait = (options: LockOptions = {}) => track(b.locks.acquire('stock', { ...terms, ...options }));
  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);

  describe('by message to a caller that has given up', () => {
    /** He gives up, and the command that should withdraw him stalls. */
    async function giveUp() {
      const holder = await a.locks.acquire('stock', terms);
      const controller = new AbortController();
      const waiting = wait({ signal: controller.signal, attemptTimeoutMs: 100 });
      await settle();
      controller.abort();
      return { holder, waiting };
    }

    it('needs no answer while a release is pending anyway', async () => {
      const arrival = gate();
      b.store.next('release', executedWhen(arrival.opened));
      const { holder, waiting } = await giveUp();
      await holder.release(); // grants it to b
      await settle();
      expect(b.store.grants).toHaveLength(1);
      expect(waiting.error).toMatchObject({ code: 'LOCK_ABORTED' });
      expect(b.store.sent('release')).toHaveLength(1);
      arrival.open();
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('is answered with a release, which is repeated until one arrives', async () => {
      const late = gate();
      b.store.next('acquire', executedWhen(late.opened));
      const { holder } = await giveUp();
      await settle(); // the withdrawal is executed, and the command that it should withdraw is not yet
      b.store.next('release', lostOnTheWay, lostOnTheWay);
      late.open();
      await holder.release();
      await world.clock.advance(99);
      expect(world.server.isEmpty).toBe(false);
      await world.clock.advance(200);
      expect(b.store.sent('release')).toHaveLength(4);
      expect(new Set(b.store.sent('release').map(({ owner }) => owner)).size).toBe(1);
      expect(world.server.isEmpty).toBe(true);
    });

    it('does not delay the next one for longer than a round trip', async () => {
      const c = world.instance('c');
      const late = gate();
      b.store.next('acquire', executedWhen(late.opened));
      const { holder } = await giveUp();
      late.open();
      await settle();
      const next = track(c.locks.acquire('stock'));
      await holder.release();
      await settle();
      expect(next.state).toBe('fulfilled');
    });
  });

  it.each([
    ['granted', false],
    ['queued', true],
  ])(
    'or a place in the queue (%s) by a command that is executed after its withdrawal leaves nothing behind',
    async (_, isHeld) => {
      const holder = isHeld ? await a.locks.acquire('stock', terms) : undefined;
      const late = gate();
      b.store.next('acquire', executedWhen(late.opened));
      const controller = new AbortController();
      const waiting = wait({ signal: controller.signal });
      await settle();
      controller.abort();
      await settle();
      expect(waiting.state).toBe('rejected');
      expect(b.store.sent('release')).toHaveLength(1);
      late.open();
      await settle();
      expect(b.store.sent('release')).toHaveLength(2);
      await holder?.release();
      expect(world.server.isEmpty).toBe(true);
      await world.clock.advance(10_000);
      expect(verbs(b)).toEqual(['acquire', 'release', 'release']);
      expect(world.clock.timers).toBe(0);
    },
  );
});

it('an abandoned wait keeps no reference to its caller', () => {
  const late = new LateGrants(new FakeClock());
  const owner = { resource: 'stock', id: 'a/1/x', mode: 'exclusive' } as const;
  const options = { leaseMs: 3_000, attemptTimeoutMs: 100, signal: new AbortController().signal };
  late.expect(owner, options, 1);
  const departed = late.claim({ resource: 'stock', fencingToken: 1, sentAt: 0, isFor: () => true });
  expect(departed?.limits).toStrictEqual({ leaseMs: 3_000, attemptTimeoutMs: 100 });
});

describe('the holders in an error', () => {
  it('of a call that does not wait come from its reply, also in the event of tryAcquire()', async () => {
    const { fencingToken } = await a.locks.acquire('stock', { mode: 'reentrant' });
    await world.clock.advance(500);
    expect(await b.locks.tryAcquire('stock')).toBeNull();
    const { error } = eventsOf(b, 'notAcquired')[0]!;
    expect(error).toMatchObject({ holders: [{ instanceId: 'a', mode: 'reentrant', fencingToken, heldMs: 500 }] });
    expect(error.message).toContain('has been held by a for 500 ms (its lease has 15 s left unless renewed)');
  });

  it('include another call of this process, with its lease and without a command', async () => {
    const first = await a.locks.acquire('stock');
    const second = a.locks.acquire('stock');
    await first.release();
    const { fencingToken } = await second;
    expect(fencingToken).toBe(first.fencingToken + 1);
    a.store.commands.length = 0;
    await world.clock.advance(1_000);
    const waiting = track(a.locks.acquire('stock', { waitMs: 300 }));
    await world.clock.advance(300);
    expect(a.store.sent('acquire')).toEqual([]);
    expect(waiting.error).toMatchObject({
      attempts: 0,
      holderCount: 1,
      holders: [{ instanceId: 'a', isThisProcess: true, mode: 'exclusive', fencingToken, heldMs: 1_300 }],
    });
    expect((waiting.error as Error).message).toMatch(
      /^"stock" has been held by another call of this process for 1\.3 s; waited 300 ms behind other calls of this process\./,
    );
  });

  it('of several resources belong to the one that was not free', async () => {
    await a.locks.acquire('y');
    const waiting = track(b.locks.acquire(['x', 'y', 'z'], { waitMs: 1_000 }));
    await world.clock.advance(1_000);
    expect(waiting.error).toMatchObject({ resource: 'y', holders: [{ instanceId: 'a' }], holderCount: 1 });
    expect((waiting.error as Error).message).toMatch(/^"y" has been held by a for 1 s; waited 1 s/);
  });

  it('do not hide that Redis was unreachable', async () => {
    await a.locks.acquire('stock');
    const waiting = track(b.locks.acquire('stock', { waitMs: 3_000 }));
    await world.clock.advance(1_500);
    b.store.all(failing('notExecuted'));
    await world.clock.advance(1_500);
    expect(waiting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });

  it('never carry the secret of the owner', async () => {
    await a.locks.acquire('stock');
    const { owner } = a.store.sent('acquire')[0] as { owner: string };
    const error = await rejection<LockBusyError>(b.locks.acquire('stock', { waitMs: 0 }));
    expect(owner).toMatch(/^a\/.+\/.+$/);
    const secret = owner.slice(owner.lastIndexOf('/') + 1);
    expect(JSON.stringify(error) + error.message + error.stack).not.toContain(secret);
  });
});

const DOWN = 'not connected to Redis (connect ECONNREFUSED)';

describe('a Redis that is not connected (unavailableMs)', () => {
  const goAway = ({ store } = b) => {
    store.all(failing('notExecuted', DOWN));
    store.trouble = () => new LockStoreError('notExecuted', DOWN);
    store.unprove();
  };
  const comeBack = ({ store } = b) => {
    store.all(answered);
    store.trouble = () => undefined;
    store.reconnect();
  };
  const wait = (options: LockOptions = {}, locks = b.locks) => track(locks.acquire('stock', options));
  const code = ({ error }: Pick<Tracked<unknown>, 'error'>) => (error as { code?: string } | undefined)?.code;

  const WAYS = [
    ['queues', {}],
    ['polls', { retry: fixedInterval({ intervalMs: 50 }) }],
    ['wants several', { several: true }],
  ] as const;

  it.each(WAYS)('ends a call that %s after 2 s, long before waitMs, and reports it', async (_, how) => {
    goAway();
    const names = 'several' in how ? ['stock', 'table'] : 'stock';
    const call = track(b.locks.acquire(names as string, { waitMs: 20_000, ...('retry' in how ? how : {}) }));
    await world.clock.advance(1_999);
    expect(call.state).toBe('pending');
    await world.clock.advance(1);
    expect(call.error).toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      lastAttempt: 'failed',
      message: `Redis could not acquire "stock": ${DOWN}. The call waited 2 s for Redis (unavailableMs)`,
    });
  });

  it.each([
    [0, 20_000, 0],
    [300, 20_000, 300],
    [300, 200, 200],
    [60_000, 7_000, 7_000],
    [Infinity, 7_000, 7_000],
  ])('%d with waitMs %d: the call fails after %d ms', async (unavailableMs, waitMs, afterMs) => {
    goAway();
    const call = wait({ unavailableMs, waitMs });
    await world.clock.advance(Math.max(0, afterMs - 1));
    if (afterMs > 0) expect(call.state).toBe('pending');
    await world.clock.advance(1);
    expect(code(call)).toBe('LOCK_UNAVAILABLE');
    const isNamed = (call.error as Error).message.includes('unavailableMs');
    expect(isNamed).toBe(unavailableMs < waitMs);
  });

  it('follows the module option, or the option of the call if both are set', async () => {
    const c = world.instance('c', { defaults: { unavailableMs: 500 } });
    goAway(c);
    const [own, called] = [wait({}, c.locks), wait({ unavailableMs: 700 }, c.locks)];
    await world.clock.advance(500);
    expect([code(own), code(called)]).toEqual(['LOCK_UNAVAILABLE', undefined]);
    await world.clock.advance(200);
    expect(code(called)).toBe('LOCK_UNAVAILABLE');
  });

  it.each(WAYS)('lets a call that %s continue if it recovers in time', async (_, how) => {
    goAway();
    const names = 'several' in how ? ['stock', 'table'] : 'stock';
    const call = track(b.locks.acquire(names as string, { waitMs: 20_000, ...('retry' in how ? how : {}) }));
    await world.clock.advance(1_900);
    comeBack();
    await world.clock.advance(500);
    expect(call.value.isHeld()).toBe(true);
  });

  it('does not end a call if it is connected again, but has not answered yet', async () => {
    goAway();
    const calls = [wait(), wait(), wait({ retry: fixedInterval({ intervalMs: 400 }) })];
    await world.clock.advance(1_950);
    b.store.all(lostOnTheWay);
    b.store.trouble = () => undefined;
    await world.clock.advance(1_000);
    expect(calls.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
    comeBack();
    await world.clock.advance(100);
    expect(calls.filter(({ state }) => state === 'fulfilled')).toHaveLength(1);
  });

  it('is noticed within a second by a queued call, if no message reports it', async () => {
    b.store.hearing!.trustedForMs = 0;
    await a.locks.acquire('stock');
    const call = wait({ waitMs: 60_000 });
    await world.clock.advance(10_000);
    b.store.all(failing('notExecuted', DOWN));
    b.store.trouble = () => new LockStoreError('notExecuted', DOWN);
    await world.clock.advance(2_000 + 1_300);
    expect(code(call)).toBe('LOCK_UNAVAILABLE');
  });

  it('does not apply to a connected Redis that does not answer, or not in time', async () => {
    b.store.all(lostOnTheWay);
    const hung = wait({ waitMs: 5_000 });
    await world.clock.advance(4_999);
    expect(hung.state).toBe('pending');
    await world.clock.advance(1);
    expect(hung.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout' });
    expect((hung.error as Error).message).not.toContain('unavailableMs');
  });

  it('does not end a campaign, which continues until Redis recovers', async () => {
    goAway();
    const leadership = b.locks.campaign('mail');
    await world.clock.advance(60_000);
    comeBack();
    await world.clock.advance(2_000);
    expect(leadership.isLeader()).toBe(true);
  });

  it('ends the wait until a resource is free', async () => {
    await a.locks.acquire('stock');
    const call = track(b.locks.watches.waitUntilFree('stock', { waitMs: 60_000 }));
    await world.clock.advance(10_000);
    goAway();
    await world.clock.advance(1_990);
    expect(code(call)).toBeUndefined();
    await world.clock.advance(1_500);
    expect(call.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((call.error as Error).message).toContain('unavailableMs');
  });

  it('means that a quorum lost its majority, and not one of its nodes', async () => {
    const quorum = new QuorumWorld();
    const { locks } = quorum.client();
    quorum.down(0);
    await quorum.until(locks.acquire('chair'));
    quorum.down(0, 1);
    const call = track(locks.acquire('stock', { waitMs: 60_000 }));
    await quorum.clock.advance(1_990);
    expect(call.state).toBe('pending');
    await quorum.clock.advance(300);
    expect(call.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect((call.error as Error).message).toContain('unavailableMs');
    const other = track(locks.acquire('stock', { waitMs: 60_000 }));
    await quorum.clock.advance(1_500);
    quorum.down();
    await quorum.clock.advance(2_000);
    expect(other.value.isHeld()).toBe(true);
  });
});
