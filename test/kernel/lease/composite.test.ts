import { inspect } from 'node:util';
import { settle } from '../../support/world/fake-clock.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { LockOptions } from '../../../lib/kernel/api/lock-options.js';
import { failing } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';

describe('several resources at once', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('are acquired in one order, each once, in whatever order they are named', async () => {
    const lease = await a.locks.acquire(['to', 'from', 'to']);
    expect(lease.resources).toEqual(['from', 'to']);
    expect(lease.resource).toBe('from, to');
    expect(a.store.sent('acquire').map(({ resource }) => resource)).toEqual(['from', 'to']);
  });

  it('each have a token of their own', async () => {
    const lease = await a.locks.acquire(['x', 'y']);
    expect(lease.fencingTokenOf('x')).toBeLessThan(lease.fencingTokenOf('y'));
    expect(lease.fencingTokenOf('y')).toBe(lease.fencingToken);
    expect(() => lease.fencingTokenOf('z')).toThrow('This lease does not hold "z". It holds "x", "y".');
    const single = await a.locks.acquire('single');
    expect(single.fencingTokenOf('single')).toBe(single.fencingToken);
    expect(() => single.fencingTokenOf('x')).toThrow('This lease does not hold "x"');
  });

  it('form one lease: the largest token, the shortest time, one release', async () => {
    const lease = await a.locks.acquire(['x', 'y', 'z']);
    const tokens = (await Promise.all(lease.resources.map((name) => a.locks.inspect(name)))).map(
      ({ holders }) => holders[0]!.fencingToken,
    );
    expect(lease.fencingToken).toBe(Math.max(...tokens));
    expect(lease.isHeld()).toBe(true);
    expect(await lease.verify()).toBe(true);
    await lease.release();
    expect(lease.isHeld()).toBe(false);
    expect(world.server.isEmpty).toBe(true);
  });

  it('wait no longer than waitMs in all', async () => {
    const x = await b.locks.acquire('x');
    await b.locks.acquire('y');
    const acquiring = track(a.locks.acquire(['x', 'y'], { waitMs: 1_000 }));
    await world.clock.advance(900);
    await x.release();
    await world.clock.advance(99);
    expect(acquiring.state).toBe('pending');
    await world.clock.advance(1);
    expect(acquiring.state).toBe('rejected');
  });

  it('renew the acquired ones while they wait for the rest', async () => {
    const y = await b.locks.acquire('y');
    const acquiring = track(a.locks.acquire(['x', 'y'], { leaseMs: 300, waitMs: 20_000 }));
    await world.clock.advance(5_000);
    await y.release();
    await settle();
    expect(acquiring.value.isHeld()).toBe(true);
  });

  it('are lost as soon as one of them is lost', async () => {
    const lease = await a.locks.acquire(['x', 'y'], { leaseMs: 3_000 });
    const reasons: unknown[] = [];
    lease.signal.addEventListener('abort', () => reasons.push(lease.signal.reason));
    world.server.lose('y');
    await world.clock.advance(1_000);
    expect(reasons).toMatchObject([{ code: 'LEASE_LOST', resource: 'y', reason: 'takenOver' }]);
    expect(lease.isHeld()).toBe(false);
    expect(lease.remainingMs()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(/"y"/);
    await lease.release();
    expect(world.server.isEmpty).toBe(true);
  });

  it('are all released even if one release fails', async () => {
    const lease = await a.locks.acquire(['x', 'y']);
    a.store.next('release', failing('refused'));
    await expect(lease.release()).rejects.toMatchObject({ operation: 'release' });
    expect([(await b.locks.inspect('x')).mode, (await b.locks.inspect('y')).mode]).toContain(null);
    expect(a.store.sent('release').map(({ resource }) => resource)).toEqual(expect.arrayContaining(['x', 'y']));
  });

  it('are extended together', async () => {
    const lease = await a.locks.acquire(['x', 'y'], { watchdog: false, leaseMs: 1_000 });
    await lease.extend(5_000);
    expect(lease.remainingMs()).toBe(5_000 - 52);
  });

  describe('without a watchdog, or for a limited time,', () => {
    const both = (options: LockOptions) =>
      track(a.locks.acquire(['x', 'y'], { waitMs: 60_000, leaseMs: 1_000, ...options }));

    it('last as long as requested from the last grant on, however long the wait was', async () => {
      const other = await b.locks.acquire('y');
      const waiting = both({ watchdog: false });
      await world.clock.advance(5_300);
      await other.release();
      await settle();
      const lease = waiting.value!;
      expect(lease.remainingMs()).toBeGreaterThan(950);
      await world.clock.advance(950);
      lease.assertHeld();
      // Neither of them is renewed from then on.
      await world.clock.advance(60);
      expect(lease.isHeld()).toBe(false);
      expect((await b.locks.inspect('x')).holders).toEqual([]);
    });

    it('end at the end of maxHoldMs, counted from the last grant', async () => {
      const other = await b.locks.acquire('y');
      const waiting = both({ maxHoldMs: 3_000 });
      await world.clock.advance(5_300);
      await other.release();
      await settle();
      const lease = waiting.value!;
      await world.clock.advance(2_990);
      lease.assertHeld();
      await world.clock.advance(20);
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: 'maxHold' }));
    });

    it('cost no additional command if they are free', async () => {
      expect((await a.locks.acquire(['x', 'y'], { watchdog: false })).isHeld()).toBe(true);
      expect(a.store.commands.map(({ verb }) => verb)).toEqual(['acquire', 'acquire']);
    });

    it('are released if the lease of the first one cannot start again', async () => {
      const other = await b.locks.acquire('y');
      const waiting = both({ watchdog: false });
      await world.clock.advance(500);
      a.store.next('renew', failing('refused'));
      await other.release();
      await settle();
      expect(waiting.error).toBeInstanceOf(LockUnavailableError);
      await settle();
      expect(world.server.isEmpty).toBe(true);
    });

    it('do not change a lease that the context has entered again', async () => {
      await a.locks.using('x', { mode: 'reentrant' }, async () => {
        const lease = await a.locks.acquire(['x', 'y'], { mode: 'reentrant', watchdog: false, leaseMs: 1_000 });
        await world.clock.advance(60_000);
        expect(a.locks.current('x')?.isHeld()).toBe(true);
        await lease.release();
      });
    });
  });

  describe('with tokens of several orders, as on a cluster,', () => {
    beforeEach(() => void (a.store.fenceOf = (resource) => `fence of ${resource}`));

    it('have no token in common, because it could exceed that of the next holder of one of them', async () => {
      const lease = await a.locks.acquire(['x', 'y']);
      expect(() => lease.fencingToken).toThrow(
        'The tokens of "x", "y" cannot be compared: Redis Cluster numbers the leases of each slot separately. ' +
          'Send the token of the resource that a write changes: fencingTokenOf(resource).',
      );
      expect(lease.fencingTokenOf('x')).toBeLessThan(lease.fencingTokenOf('y'));
      expect((await a.locks.acquire(['single'])).fencingToken).toBeGreaterThan(0);
    });

    it('can still be printed, each with its token', async () => {
      const lease = await a.locks.acquire(['x', 'y'], { leaseMs: 1_000 });
      const fencingTokens = { x: lease.fencingTokenOf('x'), y: lease.fencingTokenOf('y') };
      expect(JSON.parse(JSON.stringify({ lease }))).toEqual({
        lease: { resource: 'x, y', mode: 'exclusive', fencingTokens, isHeld: true, remainingMs: 988 },
      });
      expect(inspect(lease)).toContain(`fencingTokens: { x: ${fencingTokens.x}, y: ${fencingTokens.y} }`);
      await lease.release();
      expect(eventsOf(a, 'released').map(({ resource, fencingToken }) => [resource, fencingToken])).toEqual([
        ['y', fencingTokens.y],
        ['x', fencingTokens.x],
      ]);
    });
  });

  it('of one name are a plain lease', async () => {
    const lease = await a.locks.acquire(['x', 'x']);
    expect(lease.resource).toBe('x');
  });
});
