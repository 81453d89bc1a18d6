import { Logger } from '@nestjs/common';
import { LockEventLog } from '../../../lib/nest/log/lock-event-log.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';
import { LogBook } from '../nest-apps.js';

const PAGE = 'See docs/operations/logs.md#calls-wait-for-a-long-time.';

describe('the log of calls that wait for long', () => {
  let world: LockWorld;
  let holder: Instance;
  let a: Instance;
  let log: LogBook;
  let closing: AbortController;

  beforeEach(() => {
    log = new LogBook();
    Logger.overrideLogger(log);
    world = new LockWorld();
    holder = world.instance('vm:10876');
    a = world.instance('a');
    closing = new AbortController();
    const { locks } = a;
    new LockEventLog('billing', world.clock).listenTo(locks.observers, closing.signal, () => locks.countWaiting());
  });

  afterEach(() => Logger.overrideLogger(false));

  const wait = (resource: string, waitMs = 600_000): void => void a.locks.acquire(resource, { waitMs }).catch(() => {});

  it('is one line with the holder, what is left of its lease, and how many others wait', async () => {
    // It died.
    await holder.locks.acquire('order:7', { watchdog: false, leaseMs: 32_000 });
    await holder.locks.acquire('order:8');
    wait('order:7');
    await world.clock.advance(100);
    for (let i = 0; i < 12; i++) wait(i % 2 ? 'order:7' : 'order:8');
    await world.clock.advance(6_500);
    expect(log.at('warn')).toHaveLength(1);
    expect(log.at('warn')[0]).toMatch(
      /^Waiting for "order:7": held by vm:10876, 2[67] s left; and 12 other calls wait\. See docs\/operations\/logs\.md#calls-wait-for-a-long-time\.$/,
    );
  });

  it('is one line a minute, which counts the others', async () => {
    await holder.locks.acquire('order:7');
    await holder.locks.acquire('order:8');
    wait('order:7');
    await world.clock.advance(7_000);
    // After 5 s. The holder has just renewed its lease.
    expect(log.at('warn')).toEqual([`Waiting for "order:7": held by vm:10876, 10 s left. ${PAGE}`]);
    for (let i = 0; i < 3; i++) wait('order:8');
    await world.clock.advance(60_000);
    expect(log.at('warn')).toHaveLength(2);
    expect(log.at('warn')[1]).toBe('In the last minute, 3 more calls waited for more than 5 s: "order:8".');
    await world.clock.advance(600_000);
    expect(log.at('warn')).toHaveLength(2);
  });

  it('is nothing of a call that is granted within 5 s, nor of the candidates of a leadership', async () => {
    holder.locks.campaign('reports');
    a.locks.campaign('reports');
    const lease = await holder.locks.acquire('order:7');
    wait('order:7');
    await world.clock.advance(4_000);
    await lease.release();
    await world.clock.advance(60_000);
    expect(log.at('warn')).toEqual([]);
  });

  it('names another call of this process as the holder, and many holders by number', async () => {
    await a.locks.acquire('order:7');
    wait('order:7');
    await world.clock.advance(5_000);
    expect(log.at('warn')[0]).toMatch(
      /^Waiting for "order:7": held by another call of this process, (9\.\d|10) s left\. See/,
    );
    await world.clock.advance(120_000);
    for (const { locks } of [holder, holder, world.instance('c')]) await locks.acquire('shared', { mode: 'read' });
    void a.locks.acquire('shared', { mode: 'write', waitMs: 60_000 }).catch(() => {});
    await world.clock.advance(6_500);
    expect(log.at('warn').at(-1)).toMatch(
      /^Waiting for "shared": held by [23] readers: .*vm:10876.*, \d+ s left; and 1 other call waits\. See/,
    );
  });

  it('escapes what another program may have written', async () => {
    await holder.locks.acquire('evil\n\u001b[31m');
    wait('evil\n\u001b[31m');
    await world.clock.advance(6_500);
    expect(log.at('warn')).toHaveLength(1);
    expect(log.at('warn')[0]).not.toMatch(/[\n\u001b]/);
  });

  it('has one line a minute for callbacks of waiting calls that throw', async () => {
    await holder.locks.acquire('chat:7');
    const onWait = (): void => {
      throw new TypeError('not writable');
    };
    for (let call = 0; call < 3; call++) void a.locks.acquire('chat:7', { waitMs: 600_000, onWait }).catch(() => {});
    await world.clock.advance(100);
    expect(log.at('warn')).toEqual([
      'onWait of a call for "chat:7" threw. The call continues to wait. TypeError: not writable',
    ]);
    await world.clock.advance(60_000);
    expect(log.at('warn')).toContainEqual('In the last minute, onWait threw 2 more times: "chat:7".');
  });
});
