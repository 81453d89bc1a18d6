import type { LockOwner } from '../../lib/kernel/store/lock-store.js';
import { clientOf } from '../../lib/kernel/store/ask.js';
import type { MemoryServer } from '../../lib/memory/memory-server.js';
import { track } from '../support/expect/tracked.js';
import { settle } from '../support/world/fake-clock.js';
import { QuorumWorld, type QuorumClient } from '../support/world/quorum-world.js';

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
