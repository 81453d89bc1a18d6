import { LockUnavailableError } from '../../lib/kernel/api/errors.js';
import { LockStoreError } from '../../lib/kernel/store/store-error.js';
import type { LockOwner } from '../../lib/kernel/store/lock-store.js';
import type { PushedGrant } from '../../lib/kernel/store/message-health.js';
import { rejection } from '../support/expect/eventually.js';
import { QuorumWorld, type QuorumClient } from '../support/world/quorum-world.js';

const LEASE_MS = 1_000;
const PATIENT = { maxWaiters: 100 };

function ownerOf({ store }: QuorumClient, name: string, resource = 'stock'): LockOwner {
  return { resource, id: `${store.clientId}/${name}`, mode: 'exclusive' };
}

describe('a grant', () => {
  it('is told as soon as a majority has voted: a stopped node delays nobody', async () => {
    const world = new QuorumWorld({ nodes: 5, latencyMs: () => 2 });
    const { locks } = world.client();
    world.stop(0, 1);
    const startedAt = world.clock.now();
    await world.until(locks.acquire('stock'));
    expect(world.clock.now() - startedAt).toBe(4);
  });

  it('counts from when the last of the majority was asked for, which is not when the last vote came', async () => {
    const world = new QuorumWorld({ nodes: 3 });
    const [one, two] = [world.client(), world.client()];
    const grants: PushedGrant[] = [];
    two.store.listen({ granted: (grant) => grants.push(grant), reconnected: () => {} });
    const [holder, waiter] = [ownerOf(one, 'a'), ownerOf(two, 'b')];
    await world.until(one.store.acquire(holder, LEASE_MS));
    const firstAt = world.clock.now();
    await world.until(two.store.acquire(waiter, LEASE_MS, { ...PATIENT, sentAt: firstAt }));
    // The second time, node c does not learn of the request, and node a does not vote.
    await world.clock.advance(100);
    world.down(2);
    await world.until(two.store.acquire(waiter, LEASE_MS, { ...PATIENT, sentAt: world.clock.now() }));
    world.down(0);
    one.store.release(holder).catch(() => {});
    await world.clock.advance(10);
    expect(grants).toMatchObject([{ sentAt: firstAt }]);
    expect(grants[0]!.isFor(waiter.id)).toBe(true);
  });

  it('that comes when nobody wants it any more is given back', async () => {
    const world = new QuorumWorld({ nodes: 3, nodeTimeoutMs: 50 });
    const { store } = world.client();
    const owner = ownerOf(world.clients[0]!, 'a');
    world.stop(2);
    await world.until(store.acquire(owner, LEASE_MS));
    await world.until(store.release(owner));
    await world.clock.advance(200);
    world.resume(2);
    await world.clock.advance(20);
    expect(world.isEmpty).toBe(true);
  });
});

describe('who was granted, and heard of it too late', () => {
  it.each([true, false])('gets a larger token than those who held the lock since (fencing: %s)', async (fencing) => {
    const world = new QuorumWorld({ nodes: 5, fencing });
    const [one, two] = [world.client(), world.client()];
    const [late, other] = [ownerOf(one, 'late'), ownerOf(two, 'other')];
    const ask = () => world.until(one.store.acquire(late, LEASE_MS, { ...PATIENT, sentAt: world.clock.now() }));
    const first = await ask();
    await world.clock.advance(LEASE_MS + 1);
    const between = await world.until(two.store.acquire(other, LEASE_MS));
    await world.until(two.store.release(other));
    const again = await ask();
    expect([first, between, again].map(({ status }) => status)).toEqual(['granted', 'granted', 'granted']);
    const [, newest, last] = [first, between, again].map((reply) => (reply as { fencingToken: number }).fencingToken);
    expect(last).toBeGreaterThan(newest!);
  });

  it('keeps its token where nobody can have held the lock since', async () => {
    const world = new QuorumWorld({ nodes: 5, fencing: true });
    const one = world.client();
    const late = ownerOf(one, 'late');
    const ask = () => world.until(one.store.acquire(late, LEASE_MS, { ...PATIENT, sentAt: world.clock.now() }));
    const first = await ask();
    await world.clock.advance(LEASE_MS / 2);
    world.down(0, 1);
    expect(await ask()).toEqual(first);
  });
});

describe('where no majority can vote', () => {
  it('the error says how many votes are needed, how many there were, and why each other node gave none', async () => {
    const world = new QuorumWorld({ nodes: 5, nodeTimeoutMs: 50 });
    const [one, two] = [world.client(), world.client()];
    await world.until(two.links[4]!.acquire(ownerOf(two, 'alone'), LEASE_MS));
    world.stop(1);
    world.distances[2]!.isDown = true;
    world.distances[3]!.refusal = 'NOAUTH Authentication required';
    const error = await rejection<LockStoreError>(world.until(one.store.acquire(ownerOf(one, 'a'), LEASE_MS)));
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error.failure).toBe('unknown');
    expect(error.message).toBe(
      '3 of 5 needed, got 1: b timed out after 50 ms, c not connected, ' +
        'd refused NOAUTH Authentication required, e busy',
    );
    world.resume(1);
    await world.clock.advance(100);
    expect(world.votes('stock')).toEqual(new Map([[ownerOf(two, 'alone').id, 1]]));
  });

  it('the error does not count the nodes that had no time to answer among those without a vote', async () => {
    const world = new QuorumWorld({ nodes: 5 });
    world.down(0, 1, 2);
    const { store } = world.client();
    const asked = store.acquire({ resource: 'stock', id: `${store.clientId}/a`, mode: 'exclusive' }, LEASE_MS);
    const error = await rejection<LockStoreError>(world.until(asked));
    expect(error.message).toBe(
      '3 of 5 needed, got 0: a not connected, b not connected, c not connected; ' +
        'd, e had not answered yet, too few to matter',
    );
  });

  it.each([0, 1])(
    'is none where a release hangs on a minority that does not answer, and %i more do not know it',
    async (strangers) => {
      const world = new QuorumWorld({ nodes: 5 });
      const { locks } = world.client();
      const down = strangers === 0 ? [] : [2];
      world.down(...down);
      const lease = await world.until(locks.acquire('stock'));
      world.down(0, 1);
      await world.until(lease.release());
      world.down();
      await world.clock.advance(1_000);
      expect(world.isEmpty).toBe(true);
    },
  );

  it.each([
    ['refused', (world: QuorumWorld) => world.distances.slice(0, 2).forEach((each) => (each.refusal = 'NOPERM'))],
    ['notExecuted', (world: QuorumWorld) => world.down(0, 1, 2)],
    ['unknown', (world: QuorumWorld) => world.stop(0, 1)],
  ])('that is %s', async (failure, harm) => {
    const world = new QuorumWorld({ nodes: 3 });
    const { store } = world.client();
    harm(world);
    const error = await rejection<LockStoreError>(
      world.until(store.acquire(ownerOf(world.clients[0]!, 'a'), LEASE_MS)),
    );
    expect(error.failure).toBe(failure);
  });

  it('users get a LockUnavailableError, and leases are lost by their deadline', async () => {
    const world = new QuorumWorld({ nodes: 3 });
    const { locks } = world.client({ leaseMs: LEASE_MS });
    const lease = await world.until(locks.acquire('stock'));
    await world.clock.advance(3 * LEASE_MS);
    lease.assertHeld();
    world.down(0, 1);
    const error = rejection(locks.acquire('bonds', { waitMs: 200 }));
    expect(await world.until(error)).toBeInstanceOf(LockUnavailableError);
    await world.clock.advance(LEASE_MS);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'notRenewed' });
  });
});

describe('a node that has forgotten a lease', () => {
  it('has its vote again after the next renewal, and is released with the others', async () => {
    const world = new QuorumWorld({ nodes: 3 });
    const { locks } = world.client({ leaseMs: LEASE_MS });
    const lease = await world.until(locks.acquire('stock'));
    world.forget(1);
    expect([...world.votes('stock').values()]).toEqual([2]);
    await world.clock.advance(LEASE_MS / 2);
    expect([...world.votes('stock').values()]).toEqual([3]);
    lease.assertHeld();
    await world.until(lease.release());
    await world.clock.advance(10);
    expect(world.isEmpty).toBe(true);
  });

  it('is not asked for it once the release has begun', async () => {
    const world = new QuorumWorld({ nodes: 3, latencyMs: () => 5 });
    const { store } = world.client();
    const owner = ownerOf(world.clients[0]!, 'a');
    await world.until(store.acquire(owner, LEASE_MS));
    await world.clock.advance(10);
    world.forget(1);
    const renewed = store.renew(owner, LEASE_MS);
    const released = store.release(owner);
    expect(await world.until(released)).toBe(true);
    expect(await world.until(renewed)).toBe(true);
    await world.clock.advance(50);
    expect(world.isEmpty).toBe(true);
  });

  it('and most others as well: the lease is lost', async () => {
    const world = new QuorumWorld({ nodes: 3 });
    const { locks } = world.client({ leaseMs: LEASE_MS });
    const lease = await world.until(locks.acquire('stock'));
    world.forget(0);
    world.forget(2);
    await world.clock.advance(LEASE_MS / 2);
    expect(lease.signal.reason).toMatchObject({ reason: 'takenOver' });
  });
});

describe('what it keeps in mind', () => {
  it('is nothing of leases that were released, whatever a node did meanwhile', async () => {
    const world = new QuorumWorld({ nodes: 3 });
    const { locks, store } = world.client({ leaseMs: LEASE_MS });
    world.stop(0);
    for (let i = 0; i < 50; i++) await world.until((await world.until(locks.acquire(`order:${i}`))).release());
    expect(store.size).toBe(0);
    await world.clock.advance(2 * LEASE_MS);
    expect(store.quorum.alarms.size).toBe(0);
    expect(store.nodes.map((node) => node.orphanReleases.size)).toEqual([0, 0, 0]);
  });

  it('is no more than a lease long of those who asked in vain', async () => {
    const world = new QuorumWorld({ nodes: 3 });
    const [one, two] = [world.client({ leaseMs: LEASE_MS }), world.client({ leaseMs: LEASE_MS })];
    await world.until(one.locks.acquire('stock'));
    for (let i = 0; i < 200; i++) {
      expect(await world.until(two.locks.tryAcquire('stock'))).toBeNull();
      await world.clock.advance(100);
    }
    expect(two.store.size).toBeLessThan(20);
  });

  it('a node that is silent is asked now and then only', async () => {
    const world = new QuorumWorld({ nodes: 3, nodeTimeoutMs: 50 });
    const { locks, links } = world.client({ leaseMs: LEASE_MS });
    world.stop(2);
    const startedAt = world.clock.now();
    for (let i = 0; i < 100; i++) await world.until((await world.until(locks.acquire(`order:${i}`))).release());
    const tookMs = world.clock.now() - startedAt;
    // Until it counts as silent, and once in each time-out after that.
    expect(links[2]!.sent).toBeLessThan(60 + tookMs / 40);
    expect(links[0]!.sent).toBeGreaterThanOrEqual(200);
  });
});

describe('an operator', () => {
  it.each([
    ['the largest of the three votes there were', [0, 0, 1_000, 0, 0], [3, 4]],
    ['that of the first three, which decided', [0, 0, 0, 1_000, 1_000], []],
  ])('inspect shows the token of the lease: %s', async (_what, skewsMs, down) => {
    const world = new QuorumWorld({ nodes: 5, skewsMs });
    const { locks } = world.client();
    world.down(...down);
    const lease = await world.until(locks.acquire('stock'));
    const { holders } = await world.until(locks.inspect('stock'));
    expect(holders).toMatchObject([{ fencingToken: lease.fencingToken }]);
    await world.until(lease.release());
  });

  it('sees what a majority knows, and ends it by the token shown, or by that of the lease', async () => {
    for (const byLease of [true, false]) {
      const world = new QuorumWorld({ nodes: 3, skewsMs: [0, 70_000, -70_000] });
      const { locks, store } = world.client({ leaseMs: LEASE_MS });
      const lease = await world.until(locks.acquire('stock'));
      await world.clock.advance(10);
      const state = await world.until(store.inspect('stock'));
      expect(state).toMatchObject({ mode: 'exclusive', holders: [{ instanceId: 'process-1', depth: 1 }] });
      const { fencingToken } = byLease ? lease : state.holders[0]!;
      expect(await world.until(store.forceRelease('stock', fencingToken + 32))).toBe(false);
      expect(await world.until(store.forceRelease('stock', fencingToken))).toBe(true);
      expect(world.votes('stock')).toEqual(new Map());
    }
  });

  it('is told where a token may be known to a node only that does not answer', async () => {
    const world = new QuorumWorld({ nodes: 3, skewsMs: [0, 70_000, 0] });
    const { locks, store } = world.client({ leaseMs: LEASE_MS });
    const lease = await world.until(locks.acquire('stock'));
    await world.clock.advance(10);
    world.down(1);
    const error = await rejection(world.until(store.forceRelease('stock', lease.fencingToken)));
    expect(error.message).toMatch(/Take the token that inspect\(\) shows now$/);
    const { holders } = await world.until(store.inspect('stock'));
    expect(await world.until(store.forceRelease('stock', holders[0]!.fencingToken))).toBe(true);
  });
});

describe('with fencing', () => {
  it('tokens grow though each lease has another majority, and clocks differ by hours', async () => {
    const hour = 3_600_000;
    const world = new QuorumWorld({ nodes: 5, fencing: true, skewsMs: [3 * hour, 0, -hour, 2 * hour, 0] });
    const { locks } = world.client({ leaseMs: LEASE_MS });
    const tokens: number[] = [];
    for (const down of [[3, 4], [0, 1], [1, 2], [0, 4], [2, 3], [0, 3], []]) {
      world.down(...down);
      const lease = await world.until(locks.acquire('stock'));
      tokens.push(lease.fencingToken);
      await world.until(lease.release());
      await world.clock.advance(LEASE_MS);
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });

  it('and also where nodes forget who held what', async () => {
    const world = new QuorumWorld({ nodes: 3, fencing: true });
    const { locks } = world.client({ leaseMs: LEASE_MS });
    const tokens: number[] = [];
    for (let i = 0; i < 9; i++) {
      world.down(i % 3);
      const lease = await world.until(locks.acquire('stock'));
      tokens.push(lease.fencingToken);
      await world.until(lease.release());
      world.forget((i + 1) % 3);
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });
});

describe('modes', () => {
  it.each(['reentrant', 'write'] as const)('%s: enters again, and passes on in memory', async (mode) => {
    const world = new QuorumWorld({ nodes: 3 });
    const { locks, links } = world.client({ leaseMs: LEASE_MS });
    const work = locks.using('stock', { mode }, () => locks.using('stock', { mode }, () => 'inside'));
    expect(await world.until(work)).toBe('inside');
    const lease = await world.until(locks.acquire('stock', { mode }));
    const next = locks.acquire('stock', { mode });
    const sent = links[0]!.sent;
    await world.until(lease.release());
    expect((await world.until(next)).fencingToken).toBe(lease.fencingToken + 1);
    expect(links[0]!.sent).toBe(sent);
  });

  it('readers share, and a writer that becomes a reader lets them in', async () => {
    const world = new QuorumWorld({ nodes: 3 });
    const [one, two] = [world.client({ leaseMs: LEASE_MS }), world.client({ leaseMs: LEASE_MS })];
    const writer = await world.until(one.locks.acquire('stock', { mode: 'write' }));
    const reader = two.locks.acquire('stock', { mode: 'read' });
    await world.clock.advance(100);
    await world.until(writer.downgrade());
    const reading = await world.until(reader);
    await world.clock.advance(3 * LEASE_MS);
    expect([writer.isHeld(), reading.isHeld()]).toEqual([true, true]);
    await world.until(Promise.all([writer.release(), reading.release()]));
    await world.clock.advance(20);
    expect(world.isEmpty).toBe(true);
  });
});
