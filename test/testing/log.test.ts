import { useKitApps } from './kit-apps.js';

const start = useKitApps();

describe('log', () => {
  it('tells who held what, in which order, and for how long', async () => {
    const { service, shop, locks } = await start({ clock: 'manual' });
    const held = await locks.holdElsewhere('order:7');
    const paying = shop.pay('7');
    await locks.advance(120);
    await held.release();
    await paying;
    const lease = await service.acquire('x', { mode: 'read' });
    await locks.advance(10);
    await locks.lose(lease);
    const entries = locks.log.entries.map(({ type, instanceId: instance, resource, mode }) => [
      type,
      instance,
      resource,
      mode,
    ]);
    expect(entries).toEqual([
      ['acquired', 'elsewhere', 'order:7', 'exclusive'],
      ['waiting', 'app-1', 'order:7', 'exclusive'],
      ['released', 'elsewhere', 'order:7', 'exclusive'],
      ['acquired', 'app-1', 'order:7', 'exclusive'],
      ['released', 'app-1', 'order:7', 'exclusive'],
      ['acquired', 'app-1', 'x', 'read'],
      ['lost', 'app-1', 'x', 'read'],
    ]);
    expect(locks.log.of('x')).toMatchObject([
      { atMs: 120, token: lease.fencingToken, waitedMs: 0 },
      { atMs: 130, token: lease.fencingToken, heldMs: 10, reason: 'takenOver' },
    ]);
    expect(locks.log.toString().split('\n').slice(1, 4)).toEqual([
      '      0 ms  app-1 waits for "order:7" (held by elsewhere)',
      '    120 ms  elsewhere released "order:7" (held 120 ms)',
      expect.stringMatching(/^ {4}120 ms {2}app-1 acquired "order:7" \(token \d+, waited 120 ms(, at .*)?\)$/),
    ]);
  });

  it('knows what is held, and where it was acquired', async () => {
    const { service, locks } = await start();
    const lease = await service.acquire('x');
    await service.using('y', async () => expect(locks.log.held.map(({ resource }) => resource)).toEqual(['x', 'y']));
    expect(locks.log.held).toMatchObject([{ resource: 'x', token: lease.fencingToken }]);
    expect(locks.log.held[0]!.from).toContain('log.test');
    locks.log.clear();
    expect(locks.log.entries).toEqual([]);
    await lease.release();
    expect(locks.log.held).toEqual([]);
    expect(locks.log.entries).toMatchObject([{ type: 'released', from: expect.stringContaining('log.test') }]);
  });
});
