import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { track } from '../../support/expect/tracked.js';

/** What each instance says, by its id. */
async function fleetOf(world: LockWorld, { locks }: Instance, options = {}) {
  const asked = track(locks.fleet(options));
  for (let turn = 0; turn < 5; turn++) await settle();
  for (let ms = 0; ms < 500 && asked.state === 'pending'; ms += 20) await world.clock.advance(20);
  const fleet = asked.value;
  return { fleet, ...Object.fromEntries(fleet.instances.map((each) => [each.instanceId, each])) } as {
    fleet: typeof fleet;
    a: (typeof fleet.instances)[number];
    b: (typeof fleet.instances)[number];
  };
}

describe('a roll call', () => {
  it('says of every instance what it holds, and what waits there for what', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    const stock = await a.locks.acquire('stock', { group: 'Stock.move' });
    await world.clock.advance(2_000);
    const waiting = track(b.locks.acquire('stock', { waitMs: 60_000, group: 'Orders.pay' }));
    await world.clock.advance(1_000);

    const { fleet, a: first, b: second } = await fleetOf(world, a);
    expect(fleet).toMatchObject({ completeness: 'complete', asked: 2, silent: [], unreadable: 0, unlisted: [] });
    expect(first).toMatchObject({ isThisInstance: true, pid: process.pid, health: 'up', hearing: true });
    expect(first.held).toEqual([
      {
        resource: 'stock',
        mode: 'exclusive',
        fencingToken: stock.fencingToken,
        heldMs: 3_000,
        leftMs: expect.any(Number),
        group: 'Stock.move',
        isRenewed: true,
      },
    ]);
    expect(second).toMatchObject({ isThisInstance: false, held: [] });
    expect(second.waiting).toMatchObject([
      { call: 1, resource: 'stock', mode: 'exclusive', waitedMs: 1_000, place: 1, group: 'Orders.pay', holds: [] },
    ]);
    await stock.release();
    await settle();
    await waiting.value.release();
  });

  it('says what a waiting call holds meanwhile, by the tokens that stand among the leases of its instance', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    const crossing = (one: Instance, first: string, then: string) =>
      track(
        one.locks.using(first, undefined, async () => {
          await world.clock.advance(0);
          await one.locks.acquire(then, { waitMs: 5_000 });
        }),
      );
    const both = [crossing(a, 'x', 'y'), crossing(b, 'y', 'x')];
    await settle();
    await world.clock.advance(10);
    const { a: first, b: second } = await fleetOf(world, a);
    for (const [each, held, wanted] of [
      [first, 'x', 'y'],
      [second, 'y', 'x'],
    ] as const) {
      const [lease] = each.held.filter(({ resource }) => resource === held);
      expect(each.waiting).toMatchObject([
        { resource: wanted, holds: [{ resource: held, fencingToken: lease!.fencingToken }] },
      ]);
    }
    await world.clock.advance(6_000);
    expect(both.map(({ state }) => state).toSorted()).toEqual(['fulfilled', 'rejected']);
  });
});
