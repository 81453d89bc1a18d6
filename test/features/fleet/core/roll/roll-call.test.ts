import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readAnswer, writeAnswer } from '../../../../../lib/features/fleet/core/roll/answer.js';
import { VERSION } from '../../../../../lib/features/fleet/core/roll/instance-report.js';
import { lifeOf } from '../../../../../lib/features/fleet/core/roll/life.js';
import type { InstanceLife } from '../../../../../lib/features/fleet/core/roll/lock-fleet.js';
import { InvalidLockOptionsError } from '../../../../../lib/kernel/api/errors.js';
import { Deferred } from '../../../../../lib/kernel/util/promises.js';
import { track } from '../../../../support/expect/tracked.js';
import { settle } from '../../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../../support/world/lock-world.js';
import { executedWhen } from '../../../../support/world/scripted-store.js';
import { fleetInstance, fleetReport, heldLease } from '../../fleet-reports.js';

/** The report of each instance, by its id. */
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
  it('has the orders in which an instance has taken locks, if they make a cycle', async () => {
    const world = new LockWorld();
    const a = world.instance('a');
    for (const [first, then] of [
      ['stock:1', 'order:1'],
      ['order:1', 'stock:1'],
    ] as const) {
      await a.locks.using(first, undefined, () => a.locks.using(then, undefined, async () => {}));
    }
    const { a: report } = await fleetOf(world, a);
    expect(report.lockOrders).toMatchObject([
      [
        { holds: 'stock:1', wants: 'order:1', callSite: expect.stringContaining('roll-call.test.ts') },
        { holds: 'order:1', wants: 'stock:1', callSite: expect.stringContaining('roll-call.test.ts') },
      ],
    ]);
  });

  it('has the holds of every instance, and its waits', async () => {
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
        isLeaked: false,
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

  it('has the locks of a waiting call, by the tokens among the leases of its instance', async () => {
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
    await world.clock.advance(1_000);
    const { fleet, a: first, b: second } = await fleetOf(world, a);
    for (const [each, held, wanted] of [
      [first, 'x', 'y'],
      [second, 'y', 'x'],
    ] as const) {
      const [lease] = each.held.filter(({ resource }) => resource === held);
      expect(each.waiting).toMatchObject([
        { resource: wanted, holds: [{ resource: held, fencingToken: lease!.fencingToken }] },
      ]);
    }
    // Each instance has taken them in one order only.
    expect([first, second].flatMap(({ lockOrders }) => lockOrders)).toEqual([]);
    expect(fleet.deadlocks).toMatchObject([
      [
        { instanceId: 'a', isThisProcess: true, holds: 'x', wants: 'y' },
        { instanceId: 'b', isThisProcess: false, holds: 'y', wants: 'x' },
      ],
    ]);
    await world.clock.advance(6_000);
    expect(both.map(({ state }) => state).toSorted()).toEqual(['fulfilled', 'rejected']);
  });
});

describe('the command line', () => {
  it('is no instance while it only reads, and one while it holds a lock', async () => {
    const world = new LockWorld();
    const [a, cli] = [world.instance('a'), world.instance('cli:host:1:x')];
    const { fleet } = await fleetOf(world, cli);
    expect(fleet).toMatchObject({ completeness: 'complete', asked: 1, subscribed: ['a'] });
    expect(fleet.instances.map(({ instanceId }) => instanceId)).toEqual(['a']);

    const lease = await cli.locks.acquire('migrate');
    await world.clock.advance(1_000);
    const { fleet: later } = await fleetOf(world, a);
    expect(later.instances.map(({ instanceId }) => instanceId)).toEqual(['a', 'cli:host:1:x']);
    await lease.release();
  });
});

describe('an instance in trouble', () => {
  it('reports lost leases from before the first question', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    const lease = await b.locks.acquire('stock', { leaseMs: 1_000 });
    await a.locks.operators.forceRelease('stock', { fencingToken: lease.fencingToken });
    await world.clock.advance(1_000);
    const { b: told } = await fleetOf(world, a);
    expect(told).toMatchObject({ lostLately: 1, lastMinute: null });
    await world.clock.advance(11 * 60_000);
    expect((await fleetOf(world, a)).b.lostLately).toBe(0);
  });

  it('reports the resources whose waits timed out in the last minute', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    await fleetOf(world, a);
    await a.locks.acquire('stock');
    const waits = [1, 2].map(() => track(b.locks.acquire('stock', { waitMs: 500 })));
    await world.clock.advance(2_000);
    expect(waits.map(({ state }) => state)).toEqual(['rejected', 'rejected']);
    const { fleet, b: told } = await fleetOf(world, a);
    expect(told.timeouts).toEqual([{ resource: 'stock', calls: 2 }]);
    expect(fleet.findings.map(({ kind, resource }) => [kind, resource])).toEqual([['timeouts', 'stock']]);
    await world.clock.advance(61_000);
    expect((await fleetOf(world, a)).b.timeouts).toEqual([]);
  });

  it('reports its elections, which make a finding of a leadership that flaps', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    for (let turn = 0; turn < 5; turn++) {
      const leadership = b.locks.campaign('mailer');
      await leadership.whenElected();
      if (turn < 4) void (await leadership.whenElected()).release();
      await world.clock.advance(1_000);
    }
    const { fleet, b: told } = await fleetOf(world, a);
    expect(told.leaderships).toEqual([{ name: 'mailer', isLeader: true, elections: 5 }]);
    expect(fleet.findings).toMatchObject([{ kind: 'leaderFlaps', resource: 'mailer', culprit: { instanceId: 'b' } }]);
  });
});

describe('a blocked instance', () => {
  it('answers late, and its answer is not stored', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    const gate = new Deferred<void>();
    b.store.next('roll', executedWhen(gate.promise));
    const { fleet } = await fleetOf(world, a);
    expect(fleet).toMatchObject({ completeness: 'partial', asked: 2, silent: ['b'] });
    await world.clock.advance(6_000);
    gate.resolve();
    await settle();
    expect(world.server.redis.keys().filter((key) => key.includes('roll'))).toEqual([]);
  });

  it('reports its own state, even if it receives no message', async () => {
    const world = new LockWorld();
    const a = world.instance('a');
    await a.locks.acquire('stock');
    a.store.isDeaf = true;
    const { fleet, a: own } = await fleetOf(world, a);
    expect(fleet).toMatchObject({ asked: 1, silent: [], unreadable: 0 });
    expect(own.held).toHaveLength(1);
  });
});

describe('the answer of an instance', () => {
  it('has its oldest holds and waits, in 4 kB, and the number of the others', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a'), world.instance('b')];
    const leases = [];
    for (let index = 0; index < 300; index++) {
      leases.push(await b.locks.acquire(`stock:${index}`));
      await world.clock.advance(1);
    }
    const waits = Array.from({ length: 150 }, (_, index) => track(b.locks.acquire(`stock:${index}`)));
    await settle();
    await fleetOf(world, a);
    const key = world.server.redis.keys().find((name) => name.startsWith('memory:roll:'))!;
    for (const text of world.server.redis.hgetall(key)) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
    const { b: told } = await fleetOf(world, a);
    expect(told.held[0]!.resource).toBe('stock:0');
    expect([told.held.length + told.more.held, told.waiting.length + told.more.waiting]).toEqual([300, 150]);
    expect(told.held.length).toBeGreaterThan(15);
    expect(told.waiting.length).toBeGreaterThan(15);
    const { b: few } = await fleetOf(world, a, { limit: 3 });
    expect(few.held.map(({ resource }) => resource)).toEqual(['stock:0', 'stock:1', 'stock:2']);
    expect(few.held.length + few.more.held).toBe(300);
    expect(waits).toHaveLength(150);
  });

  it.each([{ prefix: 7 }, { limit: 0 }, { limit: 101 }, { timeoutMs: 5_000 }, { scan: 1 }, { group: '' }, { top: 1 }])(
    'is not asked for with wrong options: %j',
    async (options) => {
      const world = new LockWorld();
      const { locks, store } = world.instance('a');
      await expect(locks.fleet(options as never)).rejects.toThrow(InvalidLockOptionsError);
      expect(store.sent('roll')).toEqual([]);
    },
  );
});

describe('an answer about the time before', () => {
  it('counts from the first roll call on, and stops if no process has asked for a while', async () => {
    const world = new LockWorld();
    const [a, b] = [world.instance('a', { observers: [] }), world.instance('b', { observers: [] })];
    const wants = () => b.locks.observers.wants('acquired') || b.locks.observers.wants('waiting');
    expect(wants()).toBe(false);
    expect((await fleetOf(world, a)).b).toMatchObject({ lastMinute: null, blockers: [] });
    expect(wants()).toBe(true);
    expect(b.locks.observers.onAnswer).toBeUndefined();

    const lease = await a.locks.acquire('stock', { label: { group: 'Stock.move' } });
    const waiting = track(b.locks.acquire('stock', { group: 'Orders.pay' }));
    await world.clock.advance(3_000);
    await lease.release();
    await settle();
    await waiting.value.release();
    await world.clock.advance(2_000);
    const { b: told } = await fleetOf(world, a);
    expect(told.lastMinute).toEqual({ forMs: 5_000, acquired: 1, notAcquired: 0, lost: 0, timedOut: 0 });
    expect(told.blockers).toEqual([{ waiter: 'Orders.pay', holder: 'Stock.move', waitedMs: 3_000, calls: 1 }]);

    await world.clock.advance(70_000);
    expect((await fleetOf(world, a)).b.lastMinute).toBeNull();
    expect((await fleetOf(world, a)).b.blockers).toHaveLength(1);
    await world.clock.advance(11 * 60_000);
    await (await b.locks.acquire('other')).release();
    expect(b.locks.observers.wants('acquired')).toBe(true); // the profile of blockers hears the next wait, and then stops
    const held = await a.locks.acquire('stock');
    const last = track(b.locks.acquire('stock'));
    await settle();
    await held.release();
    await settle();
    await last.value.release();
    expect(wants()).toBe(false);
  });
});

it('a scan that finds more resources than its limit is incomplete', async () => {
  const world = new LockWorld();
  const a = world.instance('a');
  for (const name of ['x', 'y', 'z']) await a.locks.acquire(name);
  const scan = async (limit: number) => (await a.locks.operators.scan({ prefix: '', limit })).isCut;
  expect([await scan(3), await scan(4)]).toEqual([true, false]);
  expect((await fleetOf(world, a, { scan: true })).fleet.isScanCut).toBe(false);
});

describe('the version that an instance reports', () => {
  it('is the one of package.json', () => {
    const file = join(import.meta.dirname, '../../../../../package.json');
    expect(VERSION).toBe((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version);
  });
});

const alive = fleetReport({ instances: [fleetInstance('api-1')] });
const silent = fleetReport({ silent: ['api-1'] });
const gone = fleetReport({ instances: [fleetInstance('api-2')] });

/** A lease of 30 s. */
const lease = (heldMs: number, renewedMsAgo: number) => {
  return { instanceId: 'api-1', leaseMs: 30_000, ttlMs: 30_000 - renewedMsAgo, heldMs };
};

it.each<[string, InstanceLife, Parameters<typeof lifeOf>]>([
  ['has answered', 'alive', [lease(90_000, 25_000), alive]],
  ['is subscribed, and has not answered', 'silent', [lease(90_000, 25_000), silent]],
  ['is not subscribed, and has missed two renewals', 'dead', [lease(90_000, 25_000), gone]],
  ['is not subscribed, and has missed one renewal', 'unknown', [lease(90_000, 15_000), gone]],
  ['is not subscribed, and renews', 'unknown', [lease(90_000, 5_000), gone]],
  [
    'is not subscribed, and has never renewed its lease, which may be a fixed one',
    'unknown',
    [lease(25_000, 25_000), gone],
  ],
  ['may be subscribed, for all that Redis tells', 'unknown', [lease(90_000, 25_000), { ...gone, subscribed: null }]],
  ['may have given an answer that cannot be read', 'unknown', [lease(90_000, 25_000), { ...gone, unreadable: 1 }]],
])('a holder that %s is %s', (_, life, args) => expect(lifeOf(...args)).toBe(life));

const { isThisInstance: _, ...answer } = fleetInstance('api-1', {
  held: [
    heldLease('x', 32, { isLeaked: true, callSite: 'run (dist/imports.js:8:5)' }),
    heldLease('y', 64, { isLeaked: true }),
    heldLease('z', 96, { callSite: 'run (dist/orders.js:4:2)' }),
  ],
  leaderships: [{ name: 'mailer', isLeader: true, elections: 7 }],
  lostLately: 3,
  timeouts: [{ resource: 'x', calls: 2 }],
  lockOrders: [
    [
      { holds: 'a', wants: 'b', callSite: 'move (dist/bank.js:4:2)' },
      { holds: 'b', wants: 'a' },
    ],
  ],
});

it('an answer is read as it was written', () => {
  expect(readAnswer(writeAnswer(answer), 'api-1/secret')).toEqual(answer);
});

it('an answer of a version without elections, leaks, losses, timeouts and lock orders is read without them', () => {
  const {
    x: _lost,
    t: _timeouts,
    o: _orders,
    l: leaderships,
    k: leases,
    ...older
  } = JSON.parse(writeAnswer(answer)) as {
    [name: string]: unknown[];
  };
  const text = JSON.stringify({
    ...older,
    l: leaderships!.map((row) => (row as unknown[]).slice(0, 2)),
    k: leases!.map((row) => (row as unknown[]).slice(0, 7)),
  });
  const read = readAnswer(text, 'api-1/secret');
  expect(read).toMatchObject({
    lostLately: 0,
    timeouts: [],
    lockOrders: [],
    leaderships: [{ name: 'mailer', elections: 0 }],
  });
  expect(read!.held.map(({ isLeaked }) => isLeaked)).toEqual([false, false, false]);
});
