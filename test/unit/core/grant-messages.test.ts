import type { LockOptions } from '../../../lib/core/lock-options.js';
import { settle } from '../../support/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/lock-world.js';
import {
  answered,
  deliveredWhen,
  executedWhen,
  grantLost,
  lostOnTheWay,
  repliedWhen,
} from '../../support/scripted-store.js';
import { gate, track } from '../../support/tracked.js';

const LEASE_MS = 3_000;
const DEADLINE_MS = LEASE_MS - 32;

describe('a message that grants', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const terms: LockOptions = { leaseMs: LEASE_MS, waitMs: Infinity };
  const wait = (options: LockOptions = {}) => track(b.locks.acquire('stock', { ...terms, ...options }));
  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);

  it('starts the lease at once: no command, and it is valid from the stamp of the command that stood for it', async () => {
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

  it('counts from the last heartbeat, and the first renewal comes a third of the lease after that', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await world.clock.advance(1_900);
    const { sentAt } = b.store.sent('acquire').at(-1)!;
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

  it('is heard before the reply of its own command', async () => {
    const holder = await a.locks.acquire('stock');
    const reply = gate();
    b.store.next('acquire', repliedWhen(reply.opened));
    const waiting = wait();
    await settle();
    await holder.release();
    await settle();
    expect(waiting.state).toBe('fulfilled');
    reply.open();
    await world.clock.advance(500);
    expect(verbs(b)).toEqual(['acquire']);
    expect(waiting.value.isHeld()).toBe(true);
  });

  describe('asks again in place of starting a lease', () => {
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

    it('when the lease is a fixed one, so that it is as long as was asked for', async () => {
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

  it('is found by the next heartbeat when it is lost', async () => {
    const holder = await a.locks.acquire('stock');
    const waiting = wait();
    await settle();
    b.store.nextGrants(grantLost);
    await holder.release();
    await world.clock.advance(1_250);
    expect(waiting.value.isHeld()).toBe(true);
    expect(b.store.sent('acquire')).toHaveLength(2);
  });

  describe('is without effect', () => {
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

    it('but one more release, when it comes again after the lease was released', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      await holder.release();
      await settle();
      await waiting.value.release();
      const next = await a.locks.acquire('stock');
      b.store.deliver(b.store.grants[0]!);
      await settle();
      expect(verbs(b)).toEqual(['acquire', 'release', 'release']);
      expect(await next.verify()).toBe(true);
    });

    it('but one harmless release, when somebody made it up', async () => {
      const holder = await a.locks.acquire('stock');
      const waiting = wait();
      await settle();
      const { fencingToken } = holder;
      const forged = { resource: 'stock', owner: 'b/guess', fencingToken, sentAt: world.clock.now() };
      b.store.deliver(forged);
      b.store.deliver({ ...forged, resource: 'never heard of', owner: 'b/another guess' });
      await world.clock.advance(500);
      expect(waiting.state).toBe('pending');
      expect(b.store.sent('release')).toMatchObject([{ owner: 'b/guess' }, { owner: 'b/another guess' }]);
      expect(await holder.verify()).toBe(true);
      expect(world.server.listWaiters('stock')).toEqual(['b']);
      expect(b.events).toEqual([]);
    });
  });
});
