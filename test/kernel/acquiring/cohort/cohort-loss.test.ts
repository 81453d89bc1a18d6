import type { LockOptions } from '../../../../lib/kernel/api/lock-options.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { executedWhen, lostOnTheWay, repliedWhen } from '../../../support/world/scripted-store.js';
import { gate, track, type Tracked } from '../../../support/expect/tracked.js';

const LEASE_MS = 3_000;
const DEADLINE_MS = LEASE_MS - 32;

describe('a store lease that several leases of a process share', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  const terms: LockOptions = { leaseMs: LEASE_MS, waitMs: Infinity };
  const acquire = () => a.locks.acquire('stock', terms);
  const wait = () => track(a.locks.acquire('stock', terms));

  /** The lease of a call that waited, after the one before has been released. */
  async function next<T>(before: { release(): Promise<void> }, waiting: Tracked<T>): Promise<T> {
    await before.release();
    await settle();
    return waiting.value;
  }

  it('keeps its deadline, which does not start again with the next lease', async () => {
    const first = await acquire();
    const waiting = wait();
    await world.clock.advance(7);
    const second = await next(first, waiting);
    expect(second.remainingMs()).toBe(DEADLINE_MS - 7);
  });

  it('is renewed in the same rhythm, by whoever holds it', async () => {
    const begin = world.clock.now();
    const first = await acquire();
    const waiting = wait();
    await world.clock.advance(7);
    const second = await next(first, waiting);
    await world.clock.advance(3_193);
    expect(a.store.sent('renew').map(({ sentAt }) => sentAt - begin)).toEqual([1_000, 2_000, 3_000]);
    expect(second.isHeld()).toBe(true);
  });

  it('is lost by the next lease when the process is blocked past the deadline', async () => {
    const first = await acquire();
    const waiting = wait();
    await world.clock.advance(9);
    const second = await next(first, waiting);
    world.clock.block(DEADLINE_MS - 9);
    expect(second.isHeld()).toBe(false);
    expect(second.signal.reason).toMatchObject({ reason: 'notRenewed', fencingToken: second.fencingToken });
    expect(eventsOf(a, 'lost')).toHaveLength(1);
  });

  it('is not revived by a reply that arrives after the last lease was released', async () => {
    const first = await acquire();
    const arrival = gate();
    a.store.next('renew', executedWhen(arrival.opened));
    await world.clock.advance(1_100);
    await first.release();
    arrival.open();
    await settle();
    expect(a.events.map(({ type }) => type)).toEqual(['acquired', 'released']);
  });

  describe('that is lost', () => {
    it('is not passed on: the next call acquires a lock of its own', async () => {
      const first = await acquire();
      const waiting = wait();
      a.store.fates.renew = lostOnTheWay;
      await world.clock.advance(DEADLINE_MS);
      expect(first.isHeld()).toBe(false);
      const [old, own] = a.store.sent('acquire');
      expect(own!.sentAt - old!.sentAt).toBe(DEADLINE_MS);
      expect(own!.owner).not.toBe(old!.owner);
      await world.clock.advance(100); // the lock is over in the store, too
      expect(waiting.value.fencingToken % 32).toBe(0);
      expect(waiting.value.fencingToken).toBeGreaterThan(first.fencingToken);
    });

    it('frees the lock in the store on release, if a late renewal had kept it', async () => {
      const first = await acquire();
      const waiting = wait();
      const reply = gate();
      a.store.fates.renew = repliedWhen(reply.opened);
      await world.clock.advance(DEADLINE_MS);
      a.store.fates.renew = undefined!;
      expect(waiting.state).toBe('pending'); // behind the lock of the lease that was lost
      await first.release();
      await settle();
      expect(waiting.value.isHeld()).toBe(true);
    });
  });
});
