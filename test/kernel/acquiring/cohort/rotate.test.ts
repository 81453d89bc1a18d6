import type { LockOptions } from '../../../../lib/kernel/api/lock-options.js';
import { LockStoreError } from '../../../../lib/kernel/store/store-error.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import {
  executedWhen,
  failing,
  type Fate,
  lostOnTheWay,
  repliedWhen,
  replyLost,
} from '../../../support/world/scripted-store.js';
import { gate, track } from '../../../support/expect/tracked.js';

describe('a rotation: release, and acquire for the next in line, in one command', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  // Never in memory.
  const terms: LockOptions = { strictOrder: true, leaseMs: 3_000, attemptTimeoutMs: 200 };
  const acquire = (instance: Instance, options: LockOptions = {}) =>
    instance.locks.acquire('stock', { ...terms, ...options });
  const types = ({ events }: Instance) => events.map(({ type }) => type);
  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);

  /** All that was granted is released, and nothing is left. */
  async function leaves(...leases: { release(): Promise<void> }[]): Promise<void> {
    for (const lease of leases) await lease.release();
    await world.clock.advance(1_000);
    expect(world.server.isEmpty).toBe(true);
    await world.clock.advance(10_000);
    expect(world.clock.timers).toBe(0);
  }

  it('gets a reply for both: one is released, the other one has the lock', async () => {
    const first = await acquire(a);
    const waiting = track(acquire(a));
    await first.release();
    await settle();
    expect(verbs(a)).toEqual(['acquire', 'rotate']);
    expect(a.store.sent('rotate')[0]).toMatchObject({ owner: a.store.sent('acquire')[0]!.owner, queueing: true });
    expect(types(a)).toEqual(['acquired', 'waiting', 'acquired', 'released']);
    expect(waiting.value.fencingToken).toBeGreaterThan(first.fencingToken);
    await leaves(waiting.value);
  });

  it('queues the next in line behind waiters of other processes, and waits for a message', async () => {
    const first = await acquire(a);
    const own = track(acquire(a));
    const other = track(acquire(b));
    await settle();
    await first.release();
    await settle();
    expect([own.state, other.state]).toEqual(['pending', 'fulfilled']);
    expect(eventsOf(a, 'released')).toHaveLength(1);
    await other.value.release();
    await settle();
    expect(verbs(a)).toEqual(['acquire', 'rotate']);
    await leaves(own.value);
  });

  it('counts as a release even if the store is uncertain about the second part, which is requested again', async () => {
    const doubted: Fate = async (execute) => {
      const reply = await execute();
      return { ...reply, next: new LockStoreError('unknown', 'no replica has it') };
    };
    const first = await acquire(a);
    const waiting = track(acquire(a));
    a.store.next('rotate', doubted);
    await first.release();
    await settle();
    expect(eventsOf(a, 'released')).toHaveLength(1);
    expect(waiting.state).toBe('pending');
    await world.clock.advance(30);
    expect(verbs(a)).toEqual(['acquire', 'rotate', 'acquire']);
    await leaves(waiting.value);
  });

  it('reports the lease as lost if the lock was gone, and continues with the next', async () => {
    const first = await acquire(a);
    const waiting = track(acquire(a));
    await b.store.release({ resource: 'stock', id: a.store.sent('acquire')[0]!.owner!, mode: 'exclusive' });
    await first.release();
    await settle();
    expect(eventsOf(a, 'lost')).toMatchObject([{ fencingToken: first.fencingToken, reason: 'takenOver' }]);
    expect(eventsOf(a, 'released')).toEqual([]);
    await leaves(waiting.value);
  });

  describe('without a reply', () => {
    it.each<[string, Fate]>([
      ['because its reply is lost', replyLost],
      ['because it is lost itself', lostOnTheWay],
    ])('%s, is a failed release, and is repeated until it succeeds', async (_, fate) => {
      const first = await acquire(a);
      const waiting = track(acquire(a));
      a.store.next('rotate', fate, fate);
      const releasing = track(first.release());
      await world.clock.advance(199);
      expect(releasing.state).toBe('pending');
      await world.clock.advance(1);
      expect(releasing.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'release', lastAttempt: 'timeout' });
      expect(eventsOf(a, 'releaseFailed')).toMatchObject([{ fencingToken: first.fencingToken }]);
      await world.clock.advance(600);
      expect(waiting.value.isHeld()).toBe(true);
      const rotations = a.store.sent('rotate');
      expect(rotations).toHaveLength(3);
      expect(new Set(rotations.map(({ owner, next }) => `${owner} ${next}`)).size).toBe(1);
      expect(a.store.sent('release')).toMatchObject([{ owner: rotations[0]!.owner }]); // in the background
      await leaves(waiting.value);
    });

    it('is repeated at once if the connection broke', async () => {
      const first = await acquire(a);
      const waiting = track(acquire(a));
      a.store.next('rotate', failing('unknown'));
      await expect(first.release()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'failed' });
      expect(types(a)).toEqual(['acquired', 'waiting', 'releaseFailed']);
      await world.clock.advance(50);
      expect(a.store.sent('rotate')).toHaveLength(2);
      await leaves(waiting.value);
    });

    it('fails the next call too if it is refused, and the call after it starts again', async () => {
      const first = await acquire(a);
      const line = [track(acquire(a)), track(acquire(a))];
      a.store.next('rotate', failing('refused', 'NOPERM'));
      await expect(first.release()).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      await settle();
      expect(line[0]!.error).toMatchObject({ code: 'LOCK_UNAVAILABLE', operation: 'acquire' });
      expect(verbs(a)).toEqual(['acquire', 'rotate', 'acquire', 'release']);
      await world.clock.advance(10);
      await leaves(line[1]!.value);
    });
  });

  describe('whose next caller gives up before the reply', () => {
    async function abandon(next: LockOptions | undefined, fate: (opened: Promise<void>) => Fate) {
      const first = await acquire(a);
      const controller = new AbortController();
      const second = track(acquire(a, { signal: controller.signal }));
      const third = next && track(acquire(a, next));
      const reply = gate();
      a.store.next('rotate', fate(reply.opened));
      const releasing = track(first.release());
      await settle();
      controller.abort();
      await settle();
      expect(second.error).toMatchObject({ code: 'LOCK_ABORTED' });
      reply.open();
      await settle();
      expect(releasing.state).toBe('fulfilled');
      return third;
    }

    it.each([
      ['executed', repliedWhen],
      ['not executed yet', executedWhen],
    ])('leaves the lock to the call behind it with the same terms (%s)', async (_, fate) => {
      const third = await abandon({}, fate);
      expect(third!.value.isHeld()).toBe(true);
      expect(verbs(a)).toEqual(['acquire', 'rotate']);
      await leaves(third!.value);
    });

    it.each([
      ['executed', repliedWhen],
      ['not executed yet', executedWhen],
    ])('is withdrawn if the call behind it has other terms, and that call asks again (%s)', async (_, fate) => {
      const third = await abandon({ leaseMs: 5_000 }, fate);
      const { next } = a.store.sent('rotate')[0]!;
      expect(a.store.sent('release').map(({ owner }) => owner)).toContain(next);
      expect(a.store.sent('acquire')[1]!.owner).not.toBe(next);
      await world.clock.advance(1_700); // a heartbeat, unless it was told
      expect(third!.value.isHeld()).toBe(true);
      await leaves(third!.value);
    });

    it.each([
      ['executed', repliedWhen],
      ['not executed yet', executedWhen],
    ])('is withdrawn if no call is behind it (%s)', async (_, fate) => {
      await abandon(undefined, fate);
      expect(a.store.sent('release')[0]!.owner).toBe(a.store.sent('rotate')[0]!.next);
      await leaves();
    });
  });
});
