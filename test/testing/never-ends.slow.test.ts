import { jest } from '@jest/globals';
import type { TestKitError } from 'nestjs-redis-lock/testing';
import { rejection } from '../support/expect/eventually.js';
import { useKitApps } from './kit-apps.js';

const start = useKitApps();

describe('idle', () => {
  it('names what does not end', async () => {
    const { service, locks } = await start();
    locks.fleet.instances[0]!.gate = () => new Promise(() => {});
    void service.acquire('x').catch(() => {});
    // It looks again and again for 5 s. Each look takes one.
    let seconds = 0;
    const uptime = jest.spyOn(process, 'uptime').mockImplementation(() => ++seconds);
    const error = await rejection<TestKitError>(locks.idle()).finally(() => uptime.mockRestore());
    expect(seconds).toBe(7);
    expect(error).toMatchObject({ name: 'TestKitError', code: 'notIdle' });
    expect(error.message).toContain('acquire of "x" by app-1');
    locks.fleet.instances[0]!.gate = undefined;
  });
});

describe('an advance that never ends', () => {
  it('names what was sent again and again', async () => {
    const { service, locks } = await start({ clock: 'manual' });
    await locks.holdElsewhere('order:7');
    const waiting = service.acquire('order:7', { waitMs: 1_000, retry: { next: () => 0 } }).catch(() => undefined);
    // All timers are counted, and most of them need not cost as much as an attempt.
    let isOver = false;
    const again = (): void => void (isOver || locks.fleet.clock.setTimer(again, 0));
    for (let timers = 0; timers < 9; timers++) again();
    const error = await rejection<TestKitError>(locks.advance(1_000));
    isOver = true;
    expect(error).toMatchObject({ name: 'TestKitError', code: 'endless' });
    expect(error.message).toMatch(
      /ran within advance\(1000\).* Sent most: acquire of "order:7" by app-1 \(\d+ times\)/,
    );
    // The clock continues from its last time.
    locks.redisDown();
    await service.beforeApplicationShutdown();
    await waiting;
  });
});
