import type { Lease } from '../../../../lib/core/api/lease.js';
import { settle } from '../../../support/world/fake-clock.js';
import { type Instance, LockWorld } from '../../../support/world/lock-world.js';
import { repliedWhen } from '../../../support/world/scripted-store.js';
import { gate, track } from '../../../support/expect/tracked.js';

describe('while one lease of several is on its way', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  it('a reader that joins while the lease beside it is transferred does not read beside a writer', async () => {
    const first = await a.locks.acquire('x', { mode: 'read' });
    const handingOn = first.transfer();
    // In the same turn: the command is on its way.
    const second = await a.locks.acquire('x', { mode: 'read' });
    const adopted = await b.locks.adopt(await handingOn);
    await adopted.release();
    const writer = track(b.locks.acquire('x', { mode: 'write' }));
    await settle();
    expect([second.isHeld(), writer.state]).not.toEqual([true, 'fulfilled']);
  });

  it('a release while the lease is transferred does not give it to the next local call as well', async () => {
    const first = await a.locks.acquire('x');
    const next = track(a.locks.acquire('x'));
    await settle();
    const handingOn = first.transfer();
    await first.release();
    await settle();
    const adopted = await b.locks.adopt(await handingOn).catch(() => undefined);
    expect([adopted?.isHeld() ?? false, next.state === 'fulfilled' && (next.value as Lease).isHeld()]).not.toEqual([
      true,
      true,
    ]);
  });

  it('a downgrade of several resources that is refused lets no readers into any of them', async () => {
    await a.locks.using('a', { mode: 'write' }, async () => {
      await a.locks.using(['a', 'b'], { mode: 'write' }, async (both) => {
        await expect(both.downgrade()).rejects.toMatchObject({ code: 'LOCK_REENTRY' });
        expect(await b.locks.tryAcquire('b', { mode: 'read' })).toBeNull();
      });
    });
  });

  it('a reader that enters again while its lease is transferred is told that it is gone', async () => {
    const ready = gate();
    await a.locks.using('x', { mode: 'read' }, async (lease) => {
      a.store.next('transfer', repliedWhen(ready.opened));
      const handingOn = lease.transfer();
      await settle();
      const nested = track(a.locks.acquire('x', { mode: 'read' }));
      await settle();
      ready.open();
      await handingOn;
      await settle();
      expect(nested).toMatchObject({ state: 'rejected', error: { code: 'LEASE_LOST', reason: 'transferred' } });
    });
  });
});
