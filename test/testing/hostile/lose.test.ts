import { InvalidLockOptionsError, LeaseLostError } from 'nestjs-redis-lock';
import type { TestKitError } from 'nestjs-redis-lock/testing';
import type { TestLossReason } from '../../../lib/testing/lose.js';
import { rejection } from '../../support/expect/eventually.js';
import { useKitApps } from '../kit-apps.js';

const start = useKitApps();

describe('lose', () => {
  it.each<TestLossReason>(['takenOver', 'notRenewed', 'expired', 'maxHold'])(
    'as %s of one of two readers with one lease in Redis is seen by both, before a writer has the resource',
    async (reason) => {
      const { service, locks } = await start({ clock: 'manual' });
      const readers = [await service.acquire('x', { mode: 'read' }), await service.acquire('x', { mode: 'read' })];
      const writer = locks.holdElsewhere('x', { mode: 'write', waitMs: 60_000 });
      await locks.lose(readers[0]!, reason);
      expect(readers.map((lease) => lease.isHeld())).toEqual([false, false]);
      expect(readers[1]!.signal.reason).toMatchObject({ name: 'LeaseLostError', reason });
      await writer;
    },
  );

  it('of one permit leaves the others alone', async () => {
    const { service, locks } = await start({ clock: 'manual' });
    const pool = service.semaphore('pool', { permits: 2 });
    const leases = [await pool.acquire(), await pool.acquire()];
    await locks.lose(leases[1]!);
    expect(leases.map((lease) => lease.isHeld())).toEqual([true, false]);
    expect((await service.inspect('pool')).permits).toMatchObject({ available: 1 });
  });

  it('of a lease of several resources takes those that are left', async () => {
    const { service, locks } = await start({ clock: 'manual' });
    const both = await service.acquire(['a', 'b']);
    await locks.lose('a');
    await locks.lose(both);
    expect((await service.inspect('b')).mode).toBeNull();
    expect(await rejection<TestKitError>(locks.lose(both))).toMatchObject({ code: 'unknownResource' });
  });

  it('makes the work under it fail, with all its reasons as in production', async () => {
    const { service, locks } = await start({ clock: 'manual' });
    const working = rejection(
      service.using('x', async (lease) => {
        await locks.lose('x', 'notRenewed');
        lease.assertHeld();
      }),
    );
    expect(await working).toBeInstanceOf(LeaseLostError);
    await locks.expectNothingHeld();
  });

  it('says that the application is about to release it', async () => {
    const { service, locks } = await start({ clock: 'manual' });
    const lease = await service.acquire('x');
    const releasing = lease.release();
    const error = await rejection(locks.lose('x'));
    expect(error.message).toMatch(/^The application releases "x" at this moment/);
    await releasing;
  });

  it.each([[undefined], [null], [7], [''], [{}], [['x']], [Promise.resolve()]])('refuses %p', async (lost) => {
    const { locks } = await start();
    const error = await rejection<InvalidLockOptionsError>(locks.lose(lost as never));
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.message).toContain('lose');
  });
});
