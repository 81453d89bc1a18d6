import { LockReentryError } from '../../../lib/kernel/api/lease-errors.js';
import type { AcquireMode } from '../../../lib/kernel/api/lock-options.js';
import { settle } from '../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { gate, track } from '../../support/expect/tracked.js';

const MODES: AcquireMode[] = ['exclusive', 'reentrant', 'read', 'write'];
const ENTERS = new Set(['reentrant in reentrant', 'read in read', 'write in write', 'read in write']);

const pairs = MODES.flatMap((held) => MODES.map((wanted) => [wanted, held] as const));
const allowed = pairs.filter(([wanted, held]) => ENTERS.has(`${wanted} in ${held}`));
const refused = pairs.filter(([wanted, held]) => !ENTERS.has(`${wanted} in ${held}`));

describe('an async context that holds a resource already', () => {
  let world: LockWorld;
  let a: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
  });

  afterEach(async () => {
    await settle();
    expect(world.server.isEmpty).toBe(true);
  });

  it.each(allowed)('may enter it %s in %s: same token, and the lease around it stays', async (wanted, held) => {
    await a.locks.using('stock', { mode: held }, async (outer) => {
      await a.locks.using('stock', { mode: wanted }, (inner) => {
        expect([inner.mode, inner.fencingToken]).toEqual([wanted, outer.fencingToken]);
      });
      const tried = await a.locks.tryAcquire('stock', { mode: wanted });
      const both = await a.locks.acquire(['stock', 'other'], { mode: wanted });
      expect([tried!.fencingToken, both.fencingTokenOf('stock')]).toEqual([outer.fencingToken, outer.fencingToken]);
      await both.release();
      await tried!.release();
      expect([outer.isHeld(), await outer.verify(), outer.mode]).toEqual([true, true, held]);
    });
    expect(a.store.sent('acquire').filter(({ resource }) => resource === 'stock')).toHaveLength(1);
  });

  it.each(refused)('may not enter it %s in %s: refused at once, with nothing sent', async (wanted, held) => {
    await a.locks.using('stock', { mode: held }, async (outer) => {
      const sent = a.store.commands.length;
      const names = ['stock', ['other', 'stock']];
      for (const name of names) {
        await expect(a.locks.acquire(name, { mode: wanted })).rejects.toThrow(LockReentryError);
        await expect(a.locks.using(name, { mode: wanted }, () => {})).rejects.toThrow(LockReentryError);
        await expect(a.locks.tryAcquire(name, { mode: wanted })).rejects.toThrow(LockReentryError);
      }
      expect(a.store.commands).toHaveLength(sent);
      expect(await outer.verify()).toBe(true);
    });
  });

  it('suggests a way out of an upgrade', async () => {
    await a.locks.using('stock', { mode: 'read' }, async () => {
      await expect(a.locks.acquire('stock', { mode: 'write' })).rejects.toThrow(
        "Take mode: 'write' from the start and downgrade()",
      );
    });
  });

  it('cannot upgrade inside a downgraded writer either', async () => {
    await a.locks.using('stock', { mode: 'write' }, async (lease) => {
      await lease.downgrade();
      await expect(a.locks.acquire('stock', { mode: 'write' })).rejects.toThrow(LockReentryError);
      await a.locks.using('stock', { mode: 'read' }, (inner) => expect(inner.fencingToken).toBe(lease.fencingToken));
    });
  });

  it('reads again past a waiting writer: it would wait for itself', async () => {
    const b = world.instance('b');
    const isWaitedFor = gate();
    const reading = a.locks.using('stock', { mode: 'read' }, async () => {
      await isWaitedFor.opened;
      await a.locks.using('stock', { mode: 'read' }, () => {});
    });
    await settle();
    const writers = [a, b].map(({ locks }) => track(locks.acquire('stock', { mode: 'write', waitMs: Infinity })));
    await settle();
    isWaitedFor.open();
    await reading;
    for (const writer of writers) {
      await settle();
      expect(writer.value.mode).toBe('write');
      await writer.value.release();
    }
  });
});
