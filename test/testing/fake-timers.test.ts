import { jest } from '@jest/globals';
import { useKitApps } from './kit-apps.js';

const start = useKitApps();

/** A test with a manual clock, whatever the timers of the runner do. */
async function useLocks(): Promise<void> {
  const { service, shop, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
  const held = await locks.holdElsewhere('order:7');
  const paying = shop.pay('7');
  await locks.advance(5_000);
  expect(shop.paid).toEqual([]);
  await held.release();
  await paying;
  const lease = await service.acquire('x');
  await locks.advance(60_000);
  expect(lease.isHeld()).toBe(true);
  await locks.idle();
}

describe('a manual clock beside the fake timers of the runner', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('works while they are installed, and does not move them', async () => {
    jest.useFakeTimers();
    const before = Date.now();
    let fired = false;
    setTimeout(() => (fired = true), 100);
    await useLocks();
    expect([Date.now(), fired]).toEqual([before, false]);
    jest.advanceTimersByTime(100);
    expect(fired).toBe(true);
  });

  it('is not moved by them', async () => {
    const { service, locks } = await start({ clock: 'manual', leaseMs: 9_000 });
    const lease = await service.acquire('x', { watchdog: false });
    jest.useFakeTimers();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(lease.isHeld()).toBe(true);
    await locks.advance(9_000);
    expect(lease.isHeld()).toBe(false);
  });
});
