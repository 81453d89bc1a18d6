import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { gate } from '../../support/expect/tracked.js';

describe('current', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  it('is the innermost lease of the async context, or the one of a resource', async () => {
    expect(a.locks.current()).toBeUndefined();
    await a.locks.using('outer', undefined, async (outer) => {
      await a.locks.using(['x', 'y'], undefined, async (inner) => {
        await settle();
        expect(a.locks.current()).toBe(inner);
        expect(a.locks.current('y')).toBe(inner);
        expect(a.locks.current('outer')).toBe(outer);
        expect(a.locks.current('other')).toBeUndefined();
      });
      expect(a.locks.current()).toBe(outer);
    });
    expect(a.locks.current()).toBeUndefined();
  });

  it('is undefined in another application of the process', async () => {
    const b = world.instance('b');
    await a.locks.using('stock', undefined, async () => {
      expect(b.locks.current()).toBeUndefined();
      expect(b.locks.current('stock')).toBeUndefined();
    });
  });

  it('is undefined for work that outlives the lease', async () => {
    let child!: Promise<unknown>;
    await a.locks.using('stock', undefined, async () => {
      child = new Promise((resolve) => setImmediate(() => setImmediate(resolve))).then(() => a.locks.current());
    });
    expect(await child).toBeUndefined();
  });

  it('still returns a lost lease, so that work can find out', async () => {
    await a.locks.using('stock', { watchdog: false, leaseMs: 100, onLost: 'ignore' }, async () => {
      await world.clock.advance(100);
      expect(a.locks.current()?.isHeld()).toBe(false);
      expect(a.locks.current()?.signal.aborted).toBe(true);
    });
  });

  it('is the outer lease for work that outlives the inner one', async () => {
    const over = gate();
    await a.locks.using('stock', { mode: 'reentrant' }, async (outer) => {
      let child!: Promise<unknown>;
      await a.locks.using('stock', { mode: 'reentrant' }, async () => {
        child = over.opened.then(() => a.locks.current('stock'));
      });
      over.open();
      expect(await child).toBe(outer);
    });
  });
});
