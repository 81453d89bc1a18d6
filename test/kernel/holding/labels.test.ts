import type { LockLabel } from '../../../lib/kernel/api/holder.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import type { LockBusyError, LockTimeoutError } from '../../../lib/kernel/api/errors.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';
import { rejection } from '../../support/expect/eventually.js';

const PAY: LockLabel = { group: 'Orders.pay', request: '7f' };
const REFUND: LockLabel = { group: 'Orders.refund' };
const HANDED_ON = { isHandedOn: true };

describe('the label of a call', () => {
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
    expect(error.message).toContain('is held by a (Orders.pay, request 7f) for 0 ms (its lease has');
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
      expect(busy.message).toContain('is held by a (handed on inside that process)');
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
