import { useKitApps } from '../kit-apps.js';

const start = useKitApps();

describe('idle', () => {
  it('waits for a release in the background that is sent again', async () => {
    const { service, locks } = await start({ backgroundRelease: true });
    locks.failNext('release', 'notExecuted');
    await service.using('x', async () => {});
    await locks.idle();
    expect((await service.inspect('x')).mode).toBeNull();
  });

  it('waits for a release that Redis missed, once Redis is back', async () => {
    const { service, locks } = await start({ backgroundRelease: true });
    await service.using('x', async () => locks.redisDown());
    await locks.idle();
    locks.redisUp();
    await locks.idle();
    expect((await service.inspect('x')).mode).toBeNull();
  });

  it('does not wait for a lease that is held, nor for a lost one that is not released', async () => {
    const { service, locks } = await start();
    await service.acquire('held', { watchdog: false });
    const lease = await service.acquire('lost');
    await locks.lose(lease);
    await locks.idle();
    expect((await service.inspect('held')).holders).toHaveLength(1);
    await lease.release();
  });
});
