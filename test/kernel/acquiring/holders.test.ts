import type { LockBusyError } from '../../../lib/kernel/api/errors.js';
import { eventsOf, type Instance, LockWorld } from '../../support/world/lock-world.js';
import { failing } from '../../support/world/scripted-store.js';
import { track } from '../../support/expect/tracked.js';
import { rejection } from '../../support/expect/eventually.js';

describe('the holders in an error', () => {
  let world: LockWorld;
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    world = new LockWorld();
    a = world.instance('a');
    b = world.instance('b');
  });

  it('of a call that does not wait come from its reply, also in the event of tryAcquire()', async () => {
    const { fencingToken } = await a.locks.acquire('stock', { mode: 'reentrant' });
    await world.clock.advance(500);
    expect(await b.locks.tryAcquire('stock')).toBeNull();
    const { error } = eventsOf(b, 'notAcquired')[0]!;
    expect(error).toMatchObject({ holders: [{ instanceId: 'a', mode: 'reentrant', fencingToken, heldMs: 500 }] });
    expect(error.message).toContain('is held by a for 500 ms (its lease has 15 s left unless renewed)');
  });

  it('include another call of this process, with its lease and without a command', async () => {
    const first = await a.locks.acquire('stock');
    const second = a.locks.acquire('stock');
    await first.release();
    const { fencingToken } = await second;
    expect(fencingToken).toBe(first.fencingToken + 1);
    a.store.commands.length = 0;
    await world.clock.advance(1_000);
    const waiting = track(a.locks.acquire('stock', { waitMs: 300 }));
    await world.clock.advance(300);
    expect(a.store.sent('acquire')).toEqual([]);
    expect(waiting.error).toMatchObject({
      attempts: 0,
      holderCount: 1,
      holders: [{ instanceId: 'a', isThisProcess: true, mode: 'exclusive', fencingToken, heldMs: 1_300 }],
    });
    expect((waiting.error as Error).message).toMatch(
      /^"stock" is held by another call of this process for 1\.3 s; waited 300 ms behind other calls of this process\./,
    );
  });

  it('of several resources belong to the one that was not free', async () => {
    await a.locks.acquire('y');
    const waiting = track(b.locks.acquire(['x', 'y', 'z'], { waitMs: 1_000 }));
    await world.clock.advance(1_000);
    expect(waiting.error).toMatchObject({ resource: 'y', holders: [{ instanceId: 'a' }], holderCount: 1 });
    expect((waiting.error as Error).message).toMatch(/^"y" is held by a for 1 s; waited 1 s/);
  });

  it('do not hide that Redis was unreachable', async () => {
    await a.locks.acquire('stock');
    const waiting = track(b.locks.acquire('stock', { waitMs: 3_000 }));
    await world.clock.advance(1_500);
    b.store.all(failing('notExecuted'));
    await world.clock.advance(1_500);
    expect(waiting.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });

  it('never carry the secret of the owner', async () => {
    await a.locks.acquire('stock');
    const { owner } = a.store.sent('acquire')[0] as { owner: string };
    const error = await rejection<LockBusyError>(b.locks.acquire('stock', { waitMs: 0 }));
    expect(owner).toMatch(/^a\/.+\/.+$/);
    const secret = owner.slice(owner.lastIndexOf('/') + 1);
    expect(JSON.stringify(error) + error.message + error.stack).not.toContain(secret);
  });
});
