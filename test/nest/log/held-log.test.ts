import { Logger } from '@nestjs/common';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { LogBook } from '../nest-apps.js';

describe('the log of leases', () => {
  let world: LockWorld;
  let a: Instance;
  let log: LogBook;

  beforeEach(() => {
    log = new LogBook();
    Logger.overrideLogger(log);
    world = new LockWorld();
    a = world.instance('a');
    new LockEventLog('billing', world.clock).listenTo(a.locks.observers, new AbortController().signal, () => 0);
  });

  afterEach(() => Logger.overrideLogger(false));

  const pass = (ms: number) => new Promise<void>((resolve) => world.clock.setTimer(resolve, ms));

  it('that are held for long is one line a minute, with the group and the way out', async () => {
    const options = { warnAfterMs: 60_000, group: 'Orders.pay' };
    const works = ['order:7', 'order:8', 'order:\u202e9'].map((name) =>
      a.locks.using(name, options, () => pass(100_000)),
    );
    await world.clock.advance(60_000);
    expect(log.at('warn')).toEqual([
      '"order:7" has been held for 60 s (group "Orders.pay"), longer than warnAfterMs. Other calls for it wait until it is released. ' +
        'Hold the lock for less time, or raise warnAfterMs. See docs/operations/logs.md#a-lease-is-held-for-long.',
    ]);
    await world.clock.advance(60_000);
    expect(log.at('warn').slice(1)).toEqual([
      String.raw`In the last minute, 2 more leases were held for long: "order:8", "order:\u202e9".`,
    ]);
    await Promise.all(works);
  });

  it('names no group where there is none', async () => {
    const work = a.locks.using('order 7', { warnAfterMs: 60_000 }, () => pass(100_000));
    await world.clock.advance(100_000);
    await work;
    const { observers } = a.locks;
    const call = observers.describeCall('order 7', { mode: 'write' });
    observers.emit({ ...call, type: 'leaked', fencingToken: 32, heldMs: 700, callSite: undefined, isRenewed: true });
    expect(log.at('warn')).toEqual([
      expect.stringContaining('"order 7" has been held for 60 s, longer than warnAfterMs.'),
      expect.stringContaining('The lease of "order 7" (mode write) was not released.'),
    ]);
  });

  it('that have leaked, with the kind of work that they were for', () => {
    const { observers } = a.locks;
    const leaked = (resource: string) => ({
      ...observers.describeCall(resource, { mode: 'write', group: 'Reports.run' }),
      type: 'leaked' as const,
      fencingToken: 32,
      heldMs: 700,
      callSite: 'run (report.ts:3:4)',
      isRenewed: true,
    });
    observers.emit(leaked('report:1'));
    expect(log.at('warn')).toEqual([
      'The lease of "report:1" (mode write, group "Reports.run") was not released. Nothing references it any longer, so ' +
        'nothing can release it. It was acquired at run (report.ts:3:4). It is renewed for as long as this process lives, ' +
        'so no other call gets it. Use locks.using(), await using, or release it in a finally. ' +
        'See docs/operations/logs.md#a-lease-leaks.',
    ]);
  });

  it('that are taken inside each other in orders that make a cycle', async () => {
    const both = (outer: string, inner: string) => a.locks.using(outer, {}, () => a.locks.using(inner, {}, () => {}));
    await both('order:7', 'stock:1');
    await both('stock:2', 'order:8');
    await both('stock:3', 'order:9');
    expect(log.at('warn')).toEqual([
      expect.stringMatching(
        /^Locks are taken in different orders, so calls can wait for each other: a deadlock\. A call that held "order:7", at \S.*held-log\.test\.ts:\d+:\d+\)?, wanted "stock:1", at .*\. A call that held "stock:2", at .* wanted "order:8", at .*\. Take them in one order everywhere, or all in one call\. See docs\/operations\/logs\.md#locks-are-taken-in-different-orders\.$/,
      ),
    ]);
  });

  it('that were at risk while the event loop was blocked', async () => {
    await a.locks.acquire('order:7', { leaseMs: 3_000 });
    await world.clock.advance(500);
    world.clock.block(1_900);
    await world.clock.advance(1);
    expect(log.at('warn')).toEqual([
      'The event loop was blocked for at least 1.6 s. The lease of "order:7" (leaseMs: 3000) was not renewed during that time, ' +
        'and has 568 ms left. Keep synchronous work short, give the process more CPU, or raise leaseMs. ' +
        'See docs/operations/logs.md#the-event-loop-is-blocked.',
    ]);
    world.clock.block(5_000);
    await world.clock.advance(60_000);
    expect(log.at('warn')).toEqual([
      expect.any(String),
      expect.stringMatching(/^The lease of "order:7" is no longer held/),
      'In the last minute, the event loop was blocked 1 more time while this process held "order:7".',
    ]);
  });
});
