import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { executedWhen, lostOnTheWay } from '../../support/world/scripted-store.js';
import { gate, track } from '../../support/expect/tracked.js';

const READ: LockOptions = { mode: 'read', waitMs: Infinity };
const WRITE: LockOptions = { mode: 'write', waitMs: Infinity };

describe('readers of one process', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a', { defaults: { leaseMs: 30_000 } });
    b = world.instance('b');
  });

  const verbs = ({ store }: Instance) => store.commands.map(({ verb }) => verb);
  const read = (options: LockOptions = {}) => a.locks.acquire('stock', { ...READ, ...options });
  const size = ({ locks }: Instance) => locks['operators']['deps'].localQueues.size;

  async function expectNothingLeft(): Promise<void> {
    await world.clock.advance(60_000);
    expect([world.server.isEmpty, world.clock.timers, size(a), size(b)]).toEqual([true, 0, 0, 0]);
  }

  it('share the lease of the first of them in Redis, each with a larger token', async () => {
    const leases = await Promise.all([read(), read(), read()]);
    const later = await read();
    const tokens = [...leases, later].map(({ fencingToken }) => fencingToken);
    expect(tokens).toEqual([0, 1, 2, 3].map((number) => tokens[0]! + number));
    expect(verbs(a)).toEqual(['acquire']);
    expect(eventsOf(a, 'acquired').map(({ mode }) => mode)).toEqual(Array(4).fill('read'));
  });

  it('release it in Redis once: on the release of the last one', async () => {
    const leases = await Promise.all([read(), read(), read()]);
    await leases[0]!.release();
    await leases[2]!.release();
    expect(verbs(a)).toEqual(['acquire']);
    expect(leases[1]!.isHeld()).toBe(true);
    await leases[1]!.release();
    expect(verbs(a)).toEqual(['acquire', 'release']);
    expect(eventsOf(a, 'released')).toHaveLength(3);
    await expectNothingLeft();
  });

  it.each([0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 9])(
    'are all let in, also where the time to share ends between two looks at the clock (%s ms apart)',
    async (stepMs) => {
      const writer = await b.locks.acquire('stock', WRITE);
      const waiting = Array.from({ length: 12 }, () => track(read()));
      await settle();
      world.clock.stepMs = stepMs;
      await writer.release();
      await world.clock.advance(2_000);
      world.clock.stepMs = 0;
      expect(waiting.map(({ state }) => state)).toEqual(Array(12).fill('fulfilled'));
    },
  );

  it.each<[string, LockOptions]>([
    ['with watchdog: false', { watchdog: false }],
    ['with a maxHoldMs', { maxHoldMs: 60_000 }],
    ['with another leaseMs', { leaseMs: 20_000 }],
    ['with strictOrder', { strictOrder: true }],
  ])('have a lease each %s', async (_, other) => {
    const [one, two] = [await read(), await read(other)];
    const three = await a.locks.acquire('other', { ...READ, ...other });
    const four = await a.locks.acquire('other', READ);
    expect(a.store.sent('acquire')).toHaveLength(4);
    expect((await b.locks.inspect('stock')).holders).toHaveLength(2);
    await one.release();
    expect(await two.verify()).toBe(true);
    await Promise.all([two.release(), three.release(), four.release()]);
    await expectNothingLeft();
  });

  it.each([
    [9, 1],
    [10, 2],
  ])('share for 10 ms: a reader %i ms later makes it %i in Redis', async (laterMs, members) => {
    await read();
    await world.clock.advance(laterMs);
    await read();
    expect((await b.locks.inspect('stock')).holders).toHaveLength(members);
  });

  describe('lose it together', () => {
    it('if Redis reports that it is gone', async () => {
      const leases = await Promise.all([read(), read(), read()]);
      const signals = leases.map(({ signal }) => signal);
      await b.locks.operators.forceRelease('stock', { fencingToken: leases[1]!.fencingToken });
      await world.clock.advance(10_000);
      expect(signals.map(({ reason }) => (reason as { reason: string }).reason)).toEqual(Array(3).fill('takenOver'));
      expect(eventsOf(a, 'lost')).toHaveLength(3);
      await Promise.all(leases.map((lease) => lease.release()));
      await expectNothingLeft();
    });

    it('if it is not renewed in time', async () => {
      const leases = await Promise.all([read(), read(), read()]);
      const signals = leases.map(({ signal }) => signal);
      a.store.fates.renew = lostOnTheWay;
      await world.clock.advance(29_697);
      expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false]);
      await world.clock.advance(1);
      expect(signals.map(({ reason }) => (reason as { reason: string }).reason)).toEqual(Array(3).fill('notRenewed'));
      await Promise.all(leases.map((lease) => lease.release()));
      await expectNothingLeft();
    });

    it('if the process was blocked, whoever notices first; later readers ask Redis', async () => {
      const [one, two] = await Promise.all([read(), read()]);
      world.clock.block(40_000);
      expect(one!.isHeld()).toBe(false);
      expect(two!.remainingMs()).toBe(0);
      const next = await read();
      expect(a.store.sent('acquire')).toHaveLength(2);
      await Promise.all([one!.release(), two!.release()]);
      expect(await next.verify()).toBe(true);
      await next.release();
      await expectNothingLeft();
    });
  });

  describe('beside a local writer', () => {
    it('make it queue in Redis at once', async () => {
      await read();
      const writer = track(a.locks.acquire('stock', WRITE));
      await settle();
      expect([writer.state, world.server.listWaiters('stock')]).toEqual(['pending', ['a']]);
    });

    it('are not joined by later readers', async () => {
      const first = await read();
      const writer = track(a.locks.acquire('stock', WRITE));
      const later = track(read());
      await settle();
      expect([writer.state, later.state]).toEqual(['pending', 'pending']);
      await first.release();
      await settle();
      expect([writer.state, later.state]).toEqual(['fulfilled', 'pending']);
      await writer.value.release();
      await settle();
      expect(later.value.fencingToken).toBeGreaterThan(writer.value.fencingToken);
      await later.value.release();
      await expectNothingLeft();
    });

    it.each(['aborts', 'runs out of time'])('are admitted together, when it %s', async (how) => {
      const first = await read();
      const controller = new AbortController();
      const given = how === 'aborts' ? { signal: controller.signal } : { waitMs: 50 };
      const writer = track(a.locks.acquire('stock', { ...WRITE, ...given }));
      const later = [track(read()), track(read())];
      await settle();
      if (how === 'aborts') controller.abort();
      else await world.clock.advance(50);
      await settle();
      expect([writer.state, ...later.map(({ state }) => state)]).toEqual(['rejected', 'fulfilled', 'fulfilled']);
      expect(world.server.listWaiters('stock')).toEqual([]);
      await Promise.all([first.release(), ...later.map(({ value }) => value.release())]);
      await expectNothingLeft();
    });
  });

  it('are each granted by one message, when a writer elsewhere leaves', async () => {
    const writer = await b.locks.acquire('stock', WRITE);
    const readers = [track(read()), track(read()), track(read())];
    await settle();
    expect(world.server.listWaiters('stock')).toEqual(['a']);
    await writer.release();
    await settle();
    expect(readers.map(({ state }) => state)).toEqual(Array(3).fill('fulfilled'));
    expect(a.store.grants).toHaveLength(1);
    expect(a.store.sent('acquire')).toHaveLength(1);
  });

  it('return a grant that arrives after the last of them has given up', async () => {
    const late = gate();
    a.store.next('acquire', executedWhen(late.opened));
    const controller = new AbortController();
    const reading = track(read({ signal: controller.signal }));
    await settle();
    controller.abort();
    await settle();
    late.open();
    await settle();
    expect(reading.state).toBe('rejected');
    await expectNothingLeft();
  });

  describe('and extend()', () => {
    it('never cuts the leases of the others', async () => {
      const [one, two] = await Promise.all([read(), read()]);
      const before = two!.remainingMs();
      await one!.extend(1_000);
      expect(two!.remainingMs()).toBeGreaterThanOrEqual(before);
      await world.clock.advance(20_000);
      expect([one!.isHeld(), two!.isHeld()]).toEqual([true, true]);
    });

    it('cuts the lease of a single reader', async () => {
      const [one, two] = await Promise.all([read(), read()]);
      await two!.release();
      await one!.extend(1_000);
      expect(one!.remainingMs()).toBe(1_000 - 12);
    });
  });
});
