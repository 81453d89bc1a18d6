import type { LockBusyError, LockTimeoutError } from '../../../lib/kernel/api/busy-errors.js';
import { labelWithGroup, type LockLabel } from '../../../lib/kernel/api/holder.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { LockOwner, LockStore } from '../../../lib/kernel/store/lock-store.js';
import { rejection } from '../../support/expect/eventually.js';
import { track } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing } from '../../support/world/scripted-store.js';

describe('the label of a call', () => {
  const PAY: LockLabel = { group: 'Orders.pay', request: '7f' };
  const REFUND: LockLabel = { group: 'Orders.refund' };
  const HANDED_ON = { isHandedOn: true };

  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);
  const take = ({ locks }: Instance, label?: LockLabel, options: LockOptions = {}) =>
    locks.acquire('stock', { waitMs: Infinity, ...options, ...(label && { label }) });
  /** The view of another process. */
  const shown = async () =>
    (await b.locks.inspect('stock')).holders.map(({ label, isHandedOn }) => label ?? { isHandedOn });

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(60_000);
    expect([world.server.isEmpty, world.clock.timers]).toEqual([true, 0]);
  }

  it('is visible to other processes, in errors too, and costs no command', async () => {
    const lease = await take(a, PAY);
    const error = await rejection<LockBusyError>(b.locks.acquire('stock', { waitMs: 0 }));
    expect(error.holders).toMatchObject([{ instanceId: 'a', label: PAY }]);
    expect(error.message).toContain('has been held by a (Orders.pay, request 7f) for 0 ms (its lease has');
    await world.clock.advance(12_000);
    expect(await shown()).toEqual([PAY]);
    await lease.release();
    expect(verbs(a)).toEqual(['acquire', 'renew', 'renew', 'release']);
    await expectNothingLeft();
  });

  it('names the call that a waiter of the same process waits for, whatever Redis shows', async () => {
    const lease = await take(a, PAY);
    const waiting = track(a.locks.acquire('stock', { waitMs: 10 }));
    await world.clock.advance(10);
    expect((waiting.error as LockTimeoutError).message).toContain(
      'another call of this process (Orders.pay, request 7f)',
    );
    await lease.release();
  });

  describe('if the lease is passed on in memory', () => {
    it('is removed at once, and the label of the next holder follows with an early renewal', async () => {
      const first = await take(a, PAY);
      const waiting = take(a, REFUND);
      await first.release();
      const second = await waiting;
      expect(await shown()).toEqual([HANDED_ON]);
      const busy = await rejection<LockBusyError>(b.locks.acquire('stock', { waitMs: 0 }));
      expect(busy.message).toContain('has been held by a (passed on inside that process)');
      await world.clock.advance(249);
      expect(verbs(a)).toEqual(['acquire', 'label']);
      await world.clock.advance(1);
      expect(verbs(a)).toEqual(['acquire', 'label', 'label', 'renew']);
      expect(await shown()).toEqual([REFUND]);
      await world.clock.advance(30_000);
      expect(a.store.sent('label')).toHaveLength(2);
      await second.release();
      await expectNothingLeft();
    });

    it.each([
      ['was refused', failing('refused')],
      ['was not executed', failing('notExecuted')],
    ])('is corrected by the next renewal if the command that removes it %s', async (_, fate) => {
      const first = await take(a, PAY);
      const waiting = take(a);
      a.store.next('label', fate);
      await first.release();
      const second = await waiting;
      await settle();
      await world.clock.advance(250);
      expect(await shown()).toEqual([HANDED_ON]);
      await second.release();
      expect(eventsOf(a, 'renewalFailed')).toEqual([]);
    });
  });

  describe('among readers that share a lease in Redis', () => {
    const READ: LockOptions = { mode: 'read' };

    it('is shown for none of them, until one is left', async () => {
      const first = await take(a, PAY, READ);
      const second = await take(a, REFUND, READ);
      expect(await shown()).toEqual([HANDED_ON]);
      await world.clock.advance(10_000);
      expect(await shown()).toEqual([HANDED_ON]);
      await first.release();
      await world.clock.advance(10_000);
      expect(await shown()).toEqual([REFUND]);
      await second.release();
      await expectNothingLeft();
    });
  });

  describe('if a waiter gives up, and the next call takes its place', () => {
    it('is replaced in the queue at once', async () => {
      const held = await take(b, PAY);
      const gone = track(a.locks.acquire('stock', { waitMs: 100, label: PAY }));
      const waiting = take(a, REFUND);
      await settle();
      const waiters = async () => (await b.locks.inspect('stock')).waiters.map(({ label }) => label);
      expect(await waiters()).toEqual([PAY]);
      await world.clock.advance(100);
      await world.clock.advance(1);
      expect(gone.error).toBeDefined();
      expect(await waiters()).toEqual([REFUND]);
      await held.release();
      await (await waiting).release();
      await expectNothingLeft();
    });
  });
});

describe('the module option labelGroups', () => {
  const PAY: LockOptions = { group: 'Orders.pay', waitMs: Infinity };
  const REPORT: LockOptions = { group: 'Report.run', waitMs: Infinity };

  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a', { labelGroups: true });
    b = world.instance('b', { labelGroups: true });
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);
  const shown = async () =>
    (await b.locks.inspect('stock')).holders.map(({ label, isHandedOn }) => label ?? { isHandedOn });

  it('names the group of a holder in another process, without a label of its own', async () => {
    b.locks.operators.contention();
    const report = await a.locks.acquire('stock', REPORT);
    const payment = track(b.locks.acquire('stock', PAY));
    await world.clock.advance(3_000);
    expect((await a.locks.inspect('stock')).waiters).toMatchObject([{ label: { group: 'Orders.pay' } }]);
    await report.release();
    await world.clock.advance(10);
    expect(payment.state).toBe('fulfilled');
    const { blockers } = b.locks.operators.contention();
    expect(blockers.map(({ text }) => text)).toEqual(['1 call of Orders.pay waited 3 s in total for Report.run']);
  });

  it('omits the group if the label of the call leaves no room for it', () => {
    const label = JSON.stringify({ request: 'x'.repeat(240) });
    expect(labelWithGroup(label, 'Orders.pay')).toBe(label);
    expect(labelWithGroup(undefined, '\u{1f512}'.repeat(100))).toBeUndefined();
  });

  it('sends nothing for a handover within one group', async () => {
    const first = await a.locks.acquire('stock', PAY);
    const second = track(a.locks.acquire('stock', PAY));
    const before = verbs(a);
    await first.release();
    await world.clock.advance(1_000);
    expect(second.state).toBe('fulfilled');
    expect(verbs(a)).toEqual(before);
    expect(await shown()).toEqual([{ group: 'Orders.pay' }]);
    await second.value.release();
  });

  it('is off by default: commands have no label, and no argument for one', async () => {
    const c = world.instance('c');
    const [on, off] = [a, c].map(({ store }) => ownersAskedFor(store));
    for (const { locks } of [a, c]) await (await locks.acquire('stock', PAY)).release();
    expect(on).toMatchObject([{ label: '{"group":"Orders.pay"}' }]);
    expect(off).toHaveLength(1);
    expect(off![0]).not.toHaveProperty('label');
    expect(verbs(c)).toEqual(['acquire', 'release']);
  });

  function ownersAskedFor(store: LockStore): LockOwner[] {
    const owners: LockOwner[] = [];
    const acquire = store.acquire.bind(store);
    store.acquire = (owner, ...rest) => {
      owners.push(owner);
      return acquire(owner, ...rest);
    };
    return owners;
  }
});

const MINUTE_MS = 60_000;

describe('a lease that is held for long', () => {
  let world: LockWorld;
  let a: Instance;
  const told = () => eventsOf(a, 'heldLong').map(({ resource, heldMs }) => [resource, heldMs]);
  const holdFor = (ms: number) => () => new Promise<void>((resolve) => world.clock.setTimer(resolve, ms));

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it('by using() is reported once, after a minute', async () => {
    const work = a.locks.using('order:7', undefined, holdFor(10 * MINUTE_MS));
    await world.clock.advance(MINUTE_MS - 1);
    expect(told()).toEqual([]);
    await world.clock.advance(1);
    expect(eventsOf(a, 'heldLong')).toMatchObject([
      { service: 'default', resource: 'order:7', mode: 'exclusive', group: 'order', heldMs: MINUTE_MS },
    ]);
    await world.clock.advance(10 * MINUTE_MS);
    await work;
    expect(told()).toHaveLength(1);
  });

  it('is reported after warnAfterMs of the call, of the module, or never', async () => {
    a = world.instance('a', { observers: [(event) => a.events.push(event)], defaults: { warnAfterMs: 2_000 } });
    const works = [
      a.locks.using('a', undefined, holdFor(MINUTE_MS)),
      a.locks.using('b', { warnAfterMs: 3_000 }, holdFor(MINUTE_MS)),
      a.locks.using('c', { warnAfterMs: Infinity }, holdFor(MINUTE_MS)),
      a.locks.using(['d', 'e'], { warnAfterMs: 4_000, watchdog: false, leaseMs: 10 * MINUTE_MS }, holdFor(MINUTE_MS)),
      a.locks.using('f', undefined, holdFor(1_999)),
    ];
    await world.clock.advance(MINUTE_MS);
    await Promise.all(works);
    expect(told()).toEqual([
      ['a', 2_000],
      ['b', 3_000],
      ['d', 4_000],
      ['e', 4_000],
    ]);
  });

  it('of acquire() is reported if the call requests it; leaderships are not', async () => {
    await a.locks.acquire('a');
    await a.locks.acquire('b', { warnAfterMs: 5_000 });
    a.locks.campaign('mailer');
    await world.clock.advance(10 * MINUTE_MS);
    expect(told()).toEqual([['b', 5_000]]);
  });

  it('has no timer of its own, and is still renewed in time', async () => {
    const lease = await a.locks.acquire('a', { leaseMs: 30_000, warnAfterMs: 5_000 });
    await world.clock.advance(1_000); // the timer that watched over the commands is gone
    expect(world.clock.timers).toBe(1);
    await world.clock.advance(20 * MINUTE_MS - 1_000);
    expect(lease.isHeld()).toBe(true);
    expect(a.store.sent('renew')).toHaveLength(120);
    expect(told()).toEqual([['a', 5_000]]);
  });
});
