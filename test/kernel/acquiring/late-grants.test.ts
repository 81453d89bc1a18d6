import { LateGrants } from '../../../lib/kernel/store/orphan-releases.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { FakeClock, settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, lostOnTheWay } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

describe('a grant', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

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
