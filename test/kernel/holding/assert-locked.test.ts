import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { LeaseLostError, LockNotHeldError } from '../../../lib/kernel/api/lease-errors.js';
import { gate } from '../../support/expect/tracked.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

let world: LockWorld;
let a: Instance;

beforeEach(() => {
  world = new LockWorld();
  a = world.instance('a');
});

/** The error of the check; `undefined` if it passes. */
function refusal(check: () => unknown): unknown {
  try {
    check();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('assertLocked', () => {
  const refused = (...names: string[]) => refusal(() => a.locks.assertLocked(names));

  it('passes below a lease of the resource, and sends nothing', async () => {
    await a.locks.using('outer', undefined, () =>
      a.locks.using(['x', 'y'], undefined, async () => {
        await settle();
        const sent = a.store.sent('verify').length + a.store.sent('inspect').length;
        expect([refused('x'), refused('y', 'outer'), refused('x', 'y')]).toEqual([undefined, undefined, undefined]);
        expect(a.store.sent('verify').length + a.store.sent('inspect').length).toBe(sent);
      }),
    );
  });

  it('refuses a context that holds nothing, or something else, and names it', async () => {
    const none = refused('stock');
    expect(none).toBeInstanceOf(LockNotHeldError);
    expect(none).toMatchObject({ code: 'LOCK_NOT_HELD', resource: 'stock', held: [] });
    expect((none as Error).message).toMatch(/^This async context does not hold "stock": it holds no lock\. Call this/);
    await a.locks.using('outer', undefined, () =>
      a.locks.using(['x', 'y'], undefined, () => {
        expect(refused('x', 'stock')).toMatchObject({ resource: 'stock', held: ['x', 'y', 'outer'] });
        expect((refused('stock') as Error).message).toContain(
          'does not hold "stock": it holds "x", "y", "outer". Call',
        );
      }),
    );
  });

  it.each(['exclusive', 'reentrant', 'read', 'write'] as const)('passes for a lease of mode %s', async (mode) => {
    await a.locks.using('stock', { mode }, () => expect(refused('stock')).toBeUndefined());
  });

  it('refuses a lease of acquire, which belongs to no context', async () => {
    await using lease = await a.locks.acquire('stock');
    expect(lease.isHeld()).toBe(true);
    expect(refused('stock')).toMatchObject({ code: 'LOCK_NOT_HELD', held: [] });
  });

  it('refuses the lease of another application in the process', async () => {
    const b = world.instance('b');
    await b.locks.using('stock', undefined, () => expect(refused('stock')).toMatchObject({ code: 'LOCK_NOT_HELD' }));
  });

  it('refuses work that outlives its lease', async () => {
    const over = gate();
    let late!: Promise<unknown>;
    await a.locks.using('stock', undefined, async () => {
      late = over.opened.then(() => refused('stock'));
    });
    over.open();
    expect(await late).toBeInstanceOf(LockNotHeldError);
  });

  it('reports a lost lease, even of another part of a composite lease', async () => {
    await a.locks.using(['x', 'y'], { watchdog: false, leaseMs: 100, onLost: 'ignore' }, async () => {
      await world.clock.advance(100);
      expect(refused('y')).toBeInstanceOf(LeaseLostError);
    });
    await a.locks.using(['x', 'y'], { onLost: 'ignore' }, async () => {
      world.server.lose('x');
      await world.clock.advance(15_000);
      expect(refused('y')).toMatchObject({ code: 'LEASE_LOST', resource: 'x', reason: 'takenOver' });
    });
  });

  it.each([undefined, null, '', [], [undefined], 7, '\ud800'])('refuses %p as a name', async (name) => {
    await a.locks.using('stock', undefined, () => {
      expect(refusal(() => a.locks.assertLocked(name as string))).toBeInstanceOf(InvalidLockOptionsError);
    });
  });
});

describe('currentOrThrow', () => {
  it('refuses a context without one', async () => {
    const none = refusal(() => a.locks.currentOrThrow());
    expect(none).toMatchObject({ code: 'LOCK_NOT_HELD', resource: '', held: [] });
    expect((none as Error).message).toMatch(/^This async context does not hold any lock\. Call/);
    await a.locks.using('stock', undefined, () => {
      expect(refusal(() => a.locks.currentOrThrow('order'))).toMatchObject({ resource: 'order', held: ['stock'] });
    });
  });

  it('refuses a lost lease', async () => {
    await a.locks.using('stock', { watchdog: false, leaseMs: 100, onLost: 'ignore' }, async () => {
      await world.clock.advance(100);
      expect(refusal(() => a.locks.currentOrThrow())).toBeInstanceOf(LeaseLostError);
    });
  });
});
