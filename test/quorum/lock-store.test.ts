import type { ClaimChange, ClaimNode, TickClaim } from '../../lib/features/jobs/core/job-claims.js';
import { RedisJobStore } from '../../lib/features/jobs/redis/redis-job-store.js';
import { LockUnavailableError } from '../../lib/kernel/api/errors.js';
import type { Holder } from '../../lib/kernel/api/holder.js';
import { clientOf } from '../../lib/kernel/store/ask.js';
import type { LockOwner, LockStore } from '../../lib/kernel/store/lock-store.js';
import type { PushedGrant } from '../../lib/kernel/store/message-health.js';
import { LockStoreError } from '../../lib/kernel/store/store-error.js';
import { SystemClock, SystemRandom } from '../../lib/kernel/util/clock.js';
import { MemoryLockStore } from '../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { CandidateAtNode } from '../../lib/quorum/candidate-at-node.js';
import { mergeSeen } from '../../lib/quorum/holders.js';
import type { QuorumNode } from '../../lib/quorum/node.js';
import { QuorumClaims } from '../../lib/quorum/quorum-claims.js';
import { QuorumLockStore } from '../../lib/quorum/quorum-lock-store.js';
import { rejection } from '../support/expect/eventually.js';
import { track } from '../support/expect/tracked.js';
import { settle } from '../support/world/fake-clock.js';
import { jobsOn } from '../support/world/forgetful.js';
import { type QuorumClient, QuorumWorld } from '../support/world/quorum-world.js';

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
      '3 of 5 nodes needed, got 1: b timed out after 50 ms, c not connected, ' +
        'd refused NOAUTH Authentication required, e busy',
    );
    world.resume(1);
    await world.clock.advance(100);
    expect(world.votes('stock')).toEqual(new Map([[ownerOf(two, 'alone').id, 1]]));
  });

  it('the error describes a node that rejects the password as not connected', async () => {
    const world = new QuorumWorld({ nodes: 1 });
    world.distances[0]!.refusal = 'not connected (WRONGPASS invalid username-password pair)';
    const { store } = world.client();
    const asked = store.acquire({ resource: 'stock', id: `${store.clientId}/a`, mode: 'exclusive' }, LEASE_MS);
    const error = await rejection<LockStoreError>(world.until(asked));
    expect(error.message).toBe(
      '1 of 1 nodes needed, got 0: a not connected (WRONGPASS invalid username-password pair)',
    );
  });

  it('the error does not count the nodes that had no time to answer among those without a vote', async () => {
    const world = new QuorumWorld({ nodes: 5 });
    world.down(0, 1, 2);
    const { store } = world.client();
    const asked = store.acquire({ resource: 'stock', id: `${store.clientId}/a`, mode: 'exclusive' }, LEASE_MS);
    const error = await rejection<LockStoreError>(world.until(asked));
    expect(error.message).toBe(
      '3 of 5 nodes needed, got 0: a not connected, b not connected, c not connected; ' +
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
      expect(await world.until(store.forceRelease('stock', fencingToken + 64))).toBe(false);
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

const seen = (...holders: Holder[]) => ({ holders, holderCount: holders.length });

function holder(instanceId: string, fencingToken: number, more: Partial<Holder> = {}): Holder {
  const lease = { fencingToken, ttlMs: 1_000, leaseMs: 1_000, heldMs: 50, depth: 1 };
  return { instanceId, isThisProcess: false, mode: 'exclusive', ...lease, ...more };
}

describe('the holders that a quorum sees', () => {
  it('are those that a majority names, with the token, the time and the rest of the majority', () => {
    const views = [
      seen(holder('a', 320, { ttlMs: 900, heldMs: 70 })),
      seen(holder('a', 640, { ttlMs: 700, heldMs: 50 })),
      seen(holder('a', 960, { ttlMs: 800, heldMs: 60 })),
    ];
    expect(mergeSeen(views, 0, 2)).toEqual({
      holderCount: 1,
      holders: [holder('a', 640, { ttlMs: 800, heldMs: 60 })],
    });
  });

  it('are not those of a minority, and none where the votes are split', () => {
    expect(
      mergeSeen([seen(holder('a', 32)), seen(holder('a', 32)), seen(holder('b', 64))], 0, 2)!.holders,
    ).toMatchObject([{ instanceId: 'a' }]);
    expect(mergeSeen([seen(holder('a', 32)), seen(holder('b', 64)), undefined], 0, 2)).toBeUndefined();
    expect(mergeSeen([], 3, 2)).toBeUndefined();
  });

  it('may have the votes of nodes that are silent', () => {
    expect(mergeSeen([seen(holder('a', 32)), undefined], 1, 2)).toMatchObject({
      holderCount: 1,
      holders: [{ instanceId: 'a' }],
    });
    // Both cannot hold it, and neither has more votes.
    expect(mergeSeen([seen(holder('a', 32)), seen(holder('b', 32))], 1, 2)).toBeUndefined();
    const two = mergeSeen([seen(holder('a', 32)), seen(holder('a', 32)), seen(holder('b', 32))], 2, 3);
    expect(two).toMatchObject({ holderCount: 1, holders: [{ instanceId: 'a' }] });
  });

  it('may be several readers, also of one process', () => {
    const read = (instanceId: string, token: number) => holder(instanceId, token, { mode: 'read' });
    const view = seen(read('a', 32), read('a', 64), read('b', 96));
    const less = seen(read('a', 64), read('b', 96));
    expect(mergeSeen([view, view, less], 0, 2)).toMatchObject({
      holderCount: 3,
      holders: [{ instanceId: 'a' }, { instanceId: 'a' }, { instanceId: 'b' }],
    });
  });

  it('are a sample of very many readers, where no two nodes name the same', () => {
    const view = (first: number) => ({
      holders: Array.from({ length: 8 }, (_, i) => holder(`r${first + i}`, 32 * (first + i + 1), { mode: 'read' })),
      holderCount: 100,
    });
    const merged = mergeSeen([view(0), view(20), { ...view(40), holderCount: 90 }], 0, 2)!;
    expect(merged.holders).toHaveLength(8);
    expect(merged.holderCount).toBe(100);
  });

  it('are not mixed of different modes', () => {
    const views = [seen(holder('a', 32, { mode: 'read' })), seen(holder('b', 32)), seen(holder('b', 32))];
    expect(mergeSeen(views, 2, 3)!.holders).toMatchObject([{ instanceId: 'b', mode: 'exclusive' }]);
  });
});

it('a lease is released although the next caller gives up before the nodes have answered', async () => {
  const world = new QuorumWorld({ latencyMs: () => 5 });
  const { locks } = world.client({ leaseMs: LEASE_MS, waitMs: 60_000 });
  const lease = await world.until(locks.acquire('stock'), LEASE_MS);
  const giveUp = new AbortController();
  const next = locks.acquire('stock', { signal: giveUp.signal }).catch(({ code }: { code: string }) => code);
  await world.clock.advance(50);
  const released = lease.release();
  await world.clock.advance(2);
  giveUp.abort();
  await world.until(released, LEASE_MS);
  expect(await world.until(next, LEASE_MS)).toBe('LOCK_ABORTED');
  await world.clock.advance(LEASE_MS);
  expect(world.isEmpty).toBe(true);
});

const MIN = { minHoldMs: 500 };
/** 1 % and 2 ms more, for the drift of the clocks. */
const KEPT_MS = 508;

/** Notifies the first waiter that the resource is free now, as tell-left.lua does. */
function tellOfEnd({ redis, keys }: MemoryServer): void {
  const [place, waiter] = redis.zrange(keys.waiters('stock'), 0, 1) as [string, string];
  const said = `kept 0 ${place.split(' ')[4]}`;
  redis.publish(keys.inbox(clientOf(waiter)), `${redis.sha1hex(`${said} ${waiter}`)} ${said} stock`);
}

describe('a lease with minHoldMs, on a quorum', () => {
  let world: QuorumWorld;
  let one: QuorumClient;
  let two: QuorumClient;

  beforeEach(() => {
    world = new QuorumWorld({ nodes: 3, nodeTimeoutMs: 50 });
    [one, two] = [world.client(), world.client()];
  });

  /** For how long each node keeps it. */
  const leftAtNodes = () => world.servers.map((server) => server.members('stock')[0]?.ttlMs ?? 0);

  it.each([
    ['', {}],
    [', also where fencing tokens are written to a majority', { fencing: true }],
    [', also where clocks differ by hours', { skewsMs: [0, 7_200_000, -7_200_000] }],
  ])('stays taken at every node, and goes to the first process then%s', async (_, options) => {
    world = new QuorumWorld({ nodes: 3, nodeTimeoutMs: 50, ...options });
    [one, two] = [world.client(), world.client()];
    const lease = await world.until(one.locks.acquire('stock', MIN));
    const from = world.clock.now();
    const waiting = track(two.locks.acquire('stock', { waitMs: Infinity }));
    await world.clock.advance(100);
    await world.until(lease.release());
    expect(Math.min(...leftAtNodes())).toBeGreaterThan(390);
    await world.clock.advance(from + 500 - world.clock.now());
    expect(waiting.state).toBe('pending');
    // Not by a heartbeat.
    await world.clock.advance(30);
    expect(waiting.state).toBe('fulfilled');
  });

  it('is counted from the majority, also at a node that had voted long before', async () => {
    world.stop(1, 2);
    const owner: LockOwner = { resource: 'stock', id: `${one.store.clientId}/a`, mode: 'exclusive' };
    const queueing = { sentAt: world.clock.now(), maxWaiters: 100 };
    const asked = one.store.acquire(owner, 60_000, queueing).catch(() => undefined);
    await world.clock.advance(400);
    await asked;
    world.resume(1, 2);
    const granted = one.store.acquire(owner, 60_000, { ...queueing, sentAt: world.clock.now() });
    expect((await world.until(granted)).status).toBe('granted');
    await world.until(one.store.retain(owner, { ...MIN, leftMs: KEPT_MS }));
    expect(Math.min(...leftAtNodes())).toBeGreaterThan(KEPT_MS - 10);
  });

  it('is kept also by a node that does not answer to the release at first', async () => {
    const lease = await world.until(one.locks.acquire('stock', MIN));
    world.down(2);
    await world.until(lease.release());
    await world.clock.advance(100);
    world.down();
    await world.clock.advance(200);
    const left = leftAtNodes();
    expect(Math.min(...left)).toBeGreaterThan(150);
    expect(Math.max(...left)).toBeLessThan(250);
    await world.clock.advance(250);
    expect(world.isEmpty).toBe(true);
  });

  it('sends no waiter to ask where only a minority says when it is free', async () => {
    await world.until(one.locks.acquire('stock'));
    track(two.locks.acquire('stock', { waitMs: Infinity }));
    await world.clock.advance(50);
    const { sent } = two.links[0]!;
    tellOfEnd(world.servers[0]!);
    await world.clock.advance(50);
    expect(two.links[0]!.sent).toBe(sent);
    tellOfEnd(world.servers[1]!);
    await world.clock.advance(50);
    expect(two.links[0]!.sent).toBe(sent + 1);
  });

  it('wakes no waiter by messages from before its last request', async () => {
    await world.until(one.locks.acquire('stock'));
    track(two.locks.acquire('stock', { waitMs: Infinity }));
    await world.clock.advance(50);
    for (const distance of world.distances) distance.latencyMs = () => 2_500;
    for (const server of world.servers) tellOfEnd(server);
    await settle();
    for (const distance of world.distances) distance.latencyMs = () => 1;
    await world.clock.advance(2_495);
    const { sent } = two.links[0]!;
    await world.clock.advance(10);
    expect(two.links[0]!.sent).toBe(sent);
  });
});

describe('a candidate at one node', () => {
  const LEASE_MS = 3_000;

  function atNode(): CandidateAtNode {
    let names = 0;
    const node = { answered: () => {}, expectLate: () => {} } as unknown as QuorumNode;
    const newName = () => ({ resource: 'a', id: `one/x.${++names}`, mode: 'exclusive' as const });
    return new CandidateAtNode(node, newName(), newName);
  }

  const GRANT = { fencingToken: 64, stamp: 1_000 };

  it('has the vote that a message names', () => {
    const one = atNode();
    expect(one.onGrantMessage(GRANT)).toBe(true);
    expect(one.vote).toEqual(GRANT);
  });

  it('does not have it again by the same message, once it was forgotten: any process in the channels can repeat it', () => {
    const one = atNode();
    one.onGrantMessage(GRANT);
    one.onNoReply(2_000, true);
    expect(one.vote).toBeUndefined();
    expect(one.onGrantMessage(GRANT)).toBe(false);
    expect(one.vote).toBeUndefined();
  });

  it('has it by the next grant, and by the answer of the node itself', () => {
    const one = atNode();
    one.onGrantMessage(GRANT);
    one.onNoReply(2_000, true);
    expect(one.onGrantMessage({ fencingToken: 96, stamp: 2_500 })).toBe(true);
    one.onNoReply(3_000, true);
    one.onReply({ status: 'granted', fencingToken: 96 }, 3_500);
    expect(one.vote).toEqual({ fencingToken: 96, stamp: 3_500 });
  });

  it('subscribes again if it has another name', () => {
    const one = atNode();
    one.onGrantMessage(GRANT);
    one.passVoteOn(LEASE_MS);
    expect(one.onGrantMessage({ fencingToken: 32, stamp: 2_000 })).toBe(true);
  });
});

describe('on a quorum, a call that does not wait', () => {
  /** Nodes whose queues have so many dead processes that a reply takes several commands. */
  function crowd(links: readonly LockStore[], times: number): void {
    for (const link of links) {
      const acquire = link.acquire.bind(link);
      let left = times;
      link.acquire = async (...args) =>
        left-- > 0 ? { status: 'busy', ttlMs: 1, inconclusive: true } : acquire(...args);
    }
  }

  it('asks again at once while nodes have not come to the end of those who died', async () => {
    const world = new QuorumWorld();
    const { locks, links } = world.client();
    crowd(links.slice(1), 5);
    const trying = track(locks.tryAcquire('stock'));
    await world.clock.advance(1_000);
    expect(trying.value).toMatchObject({ resource: 'stock' });
  });

  it('is refused where the lock is held', async () => {
    const world = new QuorumWorld();
    const [holder, other] = [world.client(), world.client()];
    const holding = track(holder.locks.acquire('stock'));
    await world.clock.advance(100);
    expect(holding.value).toBeDefined();
    crowd(other.links.slice(2), 5);
    const trying = track(other.locks.tryAcquire('stock'));
    await world.clock.advance(1_000);
    expect(trying.value).toBeNull();
  });
});

describe('ticks that are times, on a quorum', () => {
  const LEASE_MS = 30_000;
  const KEEP_MS = 120_000;

  let stores: QuorumLockStore[];
  let nodes: RedisJobStore[];
  let servers: MemoryServer[];
  let now: number;
  let wallNow: number;

  beforeEach(() => {
    now = Date.now();
    wallNow = now;
    const clock = new SystemClock();
    const ofServers = { ...withMethods(clock), wallNow: () => wallNow };
    servers = Array.from({ length: 3 }, () => new MemoryServer(ofServers));
    nodes = servers.map((server) => jobsOn(server));
    stores = [];
  });
  afterEach(async () => {
    for (const store of stores) await store.close();
  });

  function open(instanceId: string, claims: readonly ClaimNode[] = nodes) {
    const clock = new SystemClock();
    const random = new SystemRandom();
    const members = servers.map((server, index) => ({
      name: 'abc'[index]!,
      store: new MemoryLockStore({ instanceId, server, clientId: `${instanceId}/1` }),
    }));
    const store = new QuorumLockStore({ nodes: members, clock, random, nodeTimeoutMs: 1_000 });
    stores.push(store);
    return {
      store,
      jobs: new QuorumClaims(store, claims, clock, random),
      owner: `${instanceId}/1/${random.id()}`,
    };
  }

  const resource = 'cron:report';
  const due = () => ({ at: now, earlyMs: 20_000, lateMs: 30_000 });
  const target = () => ({ resource, tick: new Date(now).toISOString() });

  function wish(owner: string): TickClaim {
    const lockOwner = { resource, id: owner, mode: 'exclusive' as const };
    return {
      owner: lockOwner,
      leaseMs: LEASE_MS,
      claimTtlMs: KEEP_MS,
      overlap: 'wait',
      takeOver: 'nothing',
      due: due(),
    };
  }

  it('claims a tick that waits after its claims were split, and all of them given up', async () => {
    // While an earlier run holds the lock, two others write their claims a moment before this one, and give them up
    // with it.
    const rivals = ['one/1/x first', 'two/1/x second'];
    let splits = 0;
    const claims = nodes.map((node, index): ClaimNode => {
      const rival = rivals[index];
      return {
        async exchange(tick, change: ClaimChange) {
          if (rival && change.to !== undefined && splits++ < rivals.length) {
            await node.exchange(tick, { owner: rival, to: rival, claimTtlMs: KEEP_MS, due: due(), isJudged: true });
          }
          if (rival && change.drop !== undefined) await node.exchange(tick, { owner: rival, drop: rival });
          return node.exchange(tick, change);
        },
      };
    });
    const busy = open('busy');
    await busy.store.acquire({ resource, id: busy.owner, mode: 'exclusive' }, LEASE_MS);
    const { jobs, owner } = open('three', claims);
    expect(await jobs.claim(target(), wish(owner))).toMatchObject({ status: 'claimed' });
  });

  it('refuses a tick that is too late at a majority, though it was given back at one node', async () => {
    const once = open('once');
    expect(await once.jobs.claim(target(), wish(once.owner))).toMatchObject({ status: 'granted' });
    await once.store.release({ resource, id: once.owner, mode: 'exclusive' });
    // Longer than two nodes remember it; at the third, a claim of another process was given back late.
    for (const [index, { redis, keys }] of servers.entries()) {
      const claim = keys.tick(resource, target().tick);
      redis.del(claim);
      if (index === 0) redis.set(claim, 'returned', 'PX', KEEP_MS);
    }
    wallNow += 60_000;
    const stopped = open('stopped');
    expect(await stopped.jobs.claim(target(), wish(stopped.owner))).toMatchObject({ status: 'late' });
  });

  function withMethods(clock: SystemClock) {
    return {
      now: () => clock.now(),
      setTimer: (...args: Parameters<SystemClock['setTimer']>) => clock.setTimer(...args),
    };
  }
});
