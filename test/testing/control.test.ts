import { InvalidLockOptionsError, LeaseLostError, LockUnavailableError, type Lease } from 'nestjs-redis-lock';
import type { TestKitError } from 'nestjs-redis-lock/testing';
import type { TestLossReason } from '../../lib/testing/lose.js';
import { rejection } from '../support/expect/eventually.js';
import { useKitApps } from './kit-apps.js';

const start = useKitApps();

describe('lose', () => {
  it.each<TestLossReason>(['takenOver', 'notRenewed', 'expired', 'maxHold'])(
    'aborts the signal as %s, and the next waiter has the resource',
    async (reason) => {
      const { service, locks } = await start({ clock: 'manual' });
      const lease = await service.acquire('x');
      const other = locks.holdElsewhere('x', { waitMs: 60_000 });
      await locks.lose('x', reason);
      expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
      expect(lease.signal.reason).toMatchObject({ reason, resource: 'x' });
      expect(() => lease.assertHeld()).toThrow(LeaseLostError);
      expect((await other).fencingToken).toBeGreaterThan(lease.fencingToken);
      await lease.release();
      expect((await service.inspect('x')).holders).toHaveLength(1);
    },
  );

  it('refuses what the application does not hold, and says what it holds', async () => {
    const { service, locks } = await start();
    await service.acquire('mine', { watchdog: false });
    await locks.holdElsewhere('x');
    const error = await rejection<TestKitError>(locks.lose('x'));
    expect(error).toMatchObject({ name: 'TestKitError', code: 'unknownResource' });
    expect(error.message).toContain('It holds "mine". elsewhere holds "x".');
    expect(await rejection(locks.lose('mine', 'released' as never))).toBeInstanceOf(InvalidLockOptionsError);
  });
});

describe('holdElsewhere of a leadership', () => {
  it('lets another instance lead, until it releases', async () => {
    const { service, locks } = await start({ clock: 'manual' });
    const other = await locks.holdElsewhere('leader:billing');
    const leadership = service.campaign('billing');
    await locks.advance(60_000);
    expect(leadership.isLeader()).toBe(false);
    await other.release();
    await locks.idle();
    expect(leadership.isLeader()).toBe(true);
    expect((await rejection(locks.holdElsewhere('leader:billing'))).name).toBe('LockBusyError');
  });
});

describe('failNext', () => {
  it('lets an acquisition fail with an error, once', async () => {
    const { service, locks } = await start();
    locks.failNext('acquire', new Error('WRONGTYPE'));
    const error = await rejection(service.acquire('x'));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('WRONGTYPE');
    expect((await service.acquire('x')).isHeld()).toBe(true);
  });

  it('sends an acquisition again that was not executed', async () => {
    const { service, locks } = await start({ clock: 'manual' });
    locks.failNext('acquire', 'notExecuted');
    let lease: Lease | undefined;
    const acquiring = service.acquire('x').then((granted) => (lease = granted));
    await locks.advance(0);
    expect(lease).toBeUndefined();
    await locks.advance(50);
    expect(lease?.isHeld()).toBe(true);
    await acquiring;
  });

  it('lets a renewal fail, which the next one mends', async () => {
    const { service, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
    const failed: string[] = [];
    service.observe((event) => void failed.push(event.type));
    const lease = await service.acquire('x');
    locks.failNext('renew', 'notExecuted');
    await locks.advance(30_000);
    expect(failed).toContain('renewalFailed');
    expect(lease.isHeld()).toBe(true);
  });

  it('lets only commands of a named resource fail, or of a named job', async () => {
    const { service, locks } = await start();
    locks.failNext('acquire', 'refused', 'order:7');
    await service.using('order:8', async () => {});
    expect(await rejection(service.acquire('order:7'))).toBeInstanceOf(LockUnavailableError);
    await service.using('order:7', async () => {});

    locks.failNext('claim', 'refused', 'nightly');
    const run = { tick: '1', overlap: 'skip', onCrash: 'skip', claimTtlMs: 60_000, lock: {} } as const;
    expect(await service.runSingleton({ ...run, job: 'hourly' }, async () => 'ran')).toBe('ran');
    const refused = rejection(service.runSingleton({ ...run, job: 'nightly' }, async () => 'ran'));
    expect(await refused).toBeInstanceOf(LockUnavailableError);
    await locks.expectNothingHeld();
  });

  it('refuses other arguments', async () => {
    const { locks } = await start();
    expect(() => locks.failNext('acquire', 'refused', '')).toThrow('The resource given to failNext cannot be used');
    expect(() => locks.failNext('verify' as never)).toThrow(InvalidLockOptionsError);
    expect(() => locks.failNext('acquire', 'broken' as never)).toThrow("must be an Error, or one of 'notExecuted'");
  });
});

describe('redisDown', () => {
  it('refuses new calls when their wait ends, and loses leases when their time ends', async () => {
    const { service, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
    const lease = await service.acquire('held');
    locks.redisDown();
    let error: unknown;
    const acquiring = rejection(service.acquire('x', { waitMs: 2_000 })).then((reason) => (error = reason));
    await locks.advance(1_900);
    expect(error).toBeUndefined();
    await locks.advance(200);
    expect(error).toBeInstanceOf(LockUnavailableError);
    await acquiring;
    expect((error as Error).message).toContain('a test has called redisDown()');
    expect(lease.isHeld()).toBe(true);
    await locks.advance(7_000);
    expect(lease.signal.reason).toMatchObject({ name: 'LeaseLostError', reason: 'notRenewed' });
    locks.redisUp();
    expect((await service.acquire('x', { waitMs: 0 })).isHeld()).toBe(true);
  });

  it('keeps a lease that is renewed after redisUp in time, and wakes those that wait', async () => {
    const { service, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
    const lease = await service.acquire('held');
    const held = await locks.holdElsewhere('x');
    let isGranted = false;
    const options = { waitMs: 60_000, unavailableMs: 60_000 };
    const waiting = service.acquire('x', options).then((granted) => ((isGranted = true), granted));
    await locks.advance(1_000);
    locks.redisDown();
    const releasing = rejection(held.release());
    await locks.advance(3_000);
    expect(isGranted).toBe(false);
    locks.redisUp();
    await locks.advance(60_000);
    expect(lease.isHeld()).toBe(true);
    expect(isGranted).toBe(true);
    await waiting;
    await releasing;
  });
});

describe('idle', () => {
  it('resolves when a release in the background has ended', async () => {
    const { service, locks } = await start({ backgroundRelease: true });
    await service.using('x', async () => {});
    await locks.idle();
    expect((await service.inspect('x')).mode).toBeNull();
  });

  it('does not wait for a call that waits for a holder', async () => {
    const { shop, locks } = await start();
    const held = await locks.holdElsewhere('order:7');
    const paying = shop.pay('7');
    await locks.idle();
    expect(shop.paid).toEqual([]);
    await held.release();
    await paying;
    expect(shop.paid).toEqual(['7']);
  });
});
