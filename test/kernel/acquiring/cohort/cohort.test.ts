import type { LockOptions } from '../../../../lib/kernel/api/lock-options.js';
import { LockStoreError } from '../../../../lib/kernel/store/store-error.js';
import { gate, track, type Tracked } from '../../../support/expect/tracked.js';
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

describe('passing a lease on inside the process', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);

  /** So many calls of the instance wait for the resource. */
  const wait = (count: number, options: LockOptions = {}, { locks } = a) =>
    Array.from({ length: count }, () => track(locks.acquire('stock', { waitMs: Infinity, ...options })));

  /** Each of them releases as soon as it is granted. Gives the tokens in the order of the grants. */
  async function run(count: number, options: LockOptions = {}, { locks } = a): Promise<number[]> {
    const tokens: number[] = [];
    const use = () =>
      locks.using('stock', { waitMs: Infinity, ...options }, ({ fencingToken }) => void tokens.push(fencingToken));
    await Promise.all(Array.from({ length: count }, use));
    return tokens;
  }

  it('takes no command, and no time', async () => {
    const first = await a.locks.acquire('stock');
    const [second, third] = wait(2);
    await first.release();
    await settle();
    expect([second!.state, third!.state]).toEqual(['fulfilled', 'pending']);
    await second!.value.release();
    await settle();
    expect(third!.value.isHeld()).toBe(true);
    expect(verbs(a)).toEqual(['acquire']);
    await third!.value.release();
    expect(verbs(a)).toEqual(['acquire', 'release']);
    expect(world.server.isEmpty).toBe(true);
  });

  it('gives each lease a token of its own, larger by one, all within one tick', async () => {
    const tokens = await run(64);
    expect(tokens).toEqual(Array.from({ length: 64 }, (_, number) => tokens[0]! + number));
    expect(tokens[0]! % 64).toBe(0);
  });

  it('reports each acquisition and release to the observers, and no loss', async () => {
    const tokens = await run(5);
    expect(eventsOf(a, 'acquired').map(({ fencingToken }) => fencingToken)).toEqual(tokens);
    expect(eventsOf(a, 'released').map(({ fencingToken }) => fencingToken)).toEqual(tokens);
    expect(eventsOf(a, 'waiting')).toHaveLength(4);
    expect(a.events).toHaveLength(14);
  });

  it('ends the previous lease as released: it is not held, and its signal does not abort', async () => {
    const first = await a.locks.acquire('stock');
    const { signal } = first;
    wait(1);
    await first.release();
    await settle();
    expect(first.isHeld()).toBe(false);
    expect(first.remainingMs()).toBe(0);
    expect(signal.aborted).toBe(false);
    expect(() => first.assertHeld()).toThrow('it was already released');
    await expect(first.extend()).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'released' });
    expect(verbs(a)).toEqual(['acquire']);
  });

  it('skips callers that have given up', async () => {
    const first = await a.locks.acquire('stock');
    const controller = new AbortController();
    const [second] = wait(1, { signal: controller.signal });
    const [third] = wait(1, { waitMs: 3 });
    const [fourth] = wait(1);
    controller.abort();
    await world.clock.advance(3);
    await first.release();
    await settle();
    expect([second!.state, third!.state, fourth!.state]).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(fourth!.value.fencingToken).toBe(first.fencingToken + 1);
  });

  describe('ends', () => {
    it.each<[string, LockOptions, number]>([
      ['after 63 more leases', {}, 63],
      ['after each lease with strictOrder', { strictOrder: true }, 0],
    ])('%s: the lease is then rotated, once', async (_, options, passedOn) => {
      const tokens = await run(passedOn + 2, options);
      expect(verbs(a)).toEqual(['acquire', 'rotate', 'release']);
      expect(tokens[passedOn]).toBe(tokens[0]! + passedOn);
      expect(tokens[passedOn + 1]! % 64).toBe(0);
      expect(tokens[passedOn + 1]).toBeGreaterThan(tokens[passedOn]!);
    });

    it.each([
      [false, true],
      [true, false],
    ])('after the first lease if one of the two is in strict order: %j, %j', async (one, other) => {
      const first = await a.locks.acquire('stock', { strictOrder: one });
      const [second] = wait(1, { strictOrder: other });
      await first.release();
      await settle();
      expect(second!.state).toBe('fulfilled');
      expect(verbs(a)).toEqual(['acquire', 'rotate']);
    });

    it.each([
      [9, ['acquire']],
      [10, ['acquire', 'rotate']],
    ])('after 10 ms: a lease released %i ms after the store lease began', async (heldMs, commands) => {
      const first = await a.locks.acquire('stock');
      wait(1);
      await world.clock.advance(heldMs);
      await first.release();
      await settle();
      expect(verbs(a)).toEqual(commands);
    });

    it('10 ms after the store lease began, not after the last lease did', async () => {
      const first = await a.locks.acquire('stock');
      const line = wait(3);
      await world.clock.advance(6);
      await first.release();
      await settle();
      await world.clock.advance(3);
      await line[0]!.value.release();
      await settle();
      expect(verbs(a)).toEqual(['acquire']);
      await world.clock.advance(1);
      await line[1]!.value.release();
      await settle();
      expect(verbs(a)).toEqual(['acquire', 'rotate']);
      expect(line[2]!.value.fencingToken % 64).toBe(0);
    });
  });
});

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
      expect(waiting.value.fencingToken % 64).toBe(0);
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

describe('passing a lease on inside the process', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);
  const wait = (options: LockOptions) => track(a.locks.acquire('stock', { waitMs: Infinity, ...options }));

  describe('does not happen', () => {
    const plain: LockOptions = { leaseMs: 3_000 };

    it.each<[string, LockOptions, LockOptions]>([
      ['for a lease of another length', plain, { leaseMs: 3_001 }],
      ['for another mode', plain, { ...plain, mode: 'reentrant' }],
      ['for a fixed lease', plain, { ...plain, watchdog: false }],
      ['by a fixed lease', { ...plain, watchdog: false }, plain],
      ['for a lease with maxHoldMs', plain, { ...plain, maxHoldMs: 60_000 }],
      ['by a lease with maxHoldMs', { ...plain, maxHoldMs: 60_000 }, plain],
      ['between fixed leases', { ...plain, watchdog: false }, { ...plain, watchdog: false }],
    ])('%s: the lease is rotated', async (_, one, other) => {
      const first = await a.locks.acquire('stock', one);
      const second = wait(other);
      await first.release();
      await settle();
      expect(verbs(a)).toEqual(['acquire', 'rotate']);
      expect(second.value.isHeld()).toBe(true);
      expect(second.value.fencingToken % 64).toBe(0);
    });

    it('with the old length after the lease was extended', async () => {
      const first = await a.locks.acquire('stock', { leaseMs: 3_000 });
      const second = wait({ leaseMs: 3_000 });
      await first.extend(60_000);
      await first.release();
      await settle();
      expect(verbs(a)).toEqual(['acquire', 'renew', 'rotate']);
      expect(second.value.remainingMs()).toBe(3_000 - 32);
    });

    it('to a caller that polls, because it is not in line', async () => {
      const first = await a.locks.acquire('stock');
      const polling = track(a.locks.acquire('stock', { retry: { next: () => 5 } }));
      await settle();
      await first.release();
      expect(verbs(a)).toEqual(['acquire', 'acquire', 'release']);
      await world.clock.advance(5);
      expect(polling.state).toBe('fulfilled');
    });
  });

  it('works for reentrant leases: the next one starts with one entry, and may enter again', async () => {
    const held = gate();
    const work = track(
      a.locks.using('stock', { mode: 'reentrant' }, () =>
        a.locks.using('stock', { mode: 'reentrant' }, () => held.opened),
      ),
    );
    await settle();
    const depths: number[] = [];
    const inspect = async () => depths.push((await a.locks.inspect('stock')).holders[0]!.depth);
    const next = track(
      a.locks.using('stock', { mode: 'reentrant' }, async ({ fencingToken }) => {
        await inspect();
        await a.locks.using('stock', { mode: 'reentrant' }, inspect);
        await inspect();
        return fencingToken;
      }),
    );
    held.open();
    await settle();
    expect([work.state, next.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(depths).toEqual([1, 2, 1]);
    expect(next.value % 64).toBe(1);
    expect(a.store.sent('acquire')).toHaveLength(1);
    expect(world.server.isEmpty).toBe(true);
  });
});

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
