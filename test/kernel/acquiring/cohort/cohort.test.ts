import type { LockOptions } from '../../../../lib/kernel/api/lock-options.js';
import { settle } from '../../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { track } from '../../../support/expect/tracked.js';

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
    const tokens = await run(32);
    expect(tokens).toEqual(Array.from({ length: 32 }, (_, number) => tokens[0]! + number));
    expect(tokens[0]! % 32).toBe(0);
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
    expect(() => first.assertHeld()).toThrow('it was released before');
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
      ['after 31 more leases', {}, 31],
      ['after each lease with strictOrder', { strictOrder: true }, 0],
    ])('%s: the lease is then rotated, once', async (_, options, passedOn) => {
      const tokens = await run(passedOn + 2, options);
      expect(verbs(a)).toEqual(['acquire', 'rotate', 'release']);
      expect(tokens[passedOn]).toBe(tokens[0]! + passedOn);
      expect(tokens[passedOn + 1]! % 32).toBe(0);
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
      expect(line[2]!.value.fencingToken % 32).toBe(0);
    });
  });
});
