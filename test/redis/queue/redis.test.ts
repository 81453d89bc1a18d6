import { LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import {
  expectNothingLeft,
  type LockInstance,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a queue in a Redis that fails', () => {
  // On disk before it is answered, for the restart that keeps the data.
  const redis = useRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** `a` holds, and `b` and `c` wait, in this order, and take turns. */
  const scene = async (leaseMs = 10_000) => {
    const defaults = { leaseMs, strictOrder: true };
    const [a, b, c] = (await Promise.all([1, 2, 3].map(() => start({ defaults })))) as [
      LockInstance,
      LockInstance,
      LockInstance,
    ];
    const sections = new CriticalSections();
    const lease = (await a.locks.acquire('x')) as Lease;
    const calls = [sections.calls(2, b)];
    await untilQueued(a, 'x', b);
    calls.push(sections.calls(2, c));
    await untilQueued(a, 'x', b, c);
    return { a, b, c, sections, lease, calls };
  };
  const untilAllListen = (count: number) =>
    eventually(async () => expect(await admin().pubsub('CHANNELS', 'lock:inbox:*')).toHaveLength(count));

  it('killed, and empty after that: those who wait come again, and all are served', async () => {
    const { a, b, c, sections, lease, calls } = await scene();
    await redis().kill();
    await redis().restart();
    await Promise.all([...calls, sections.call(a)]);
    sections.expectSound(5);
    expect(sections.tokens[0]).toBeGreaterThan(lease.fencingToken);
    expect(await lease.verify()).toBe(false);
    await expectNothingLeft(admin(), a, b, c);
  });

  it('killed, with its data after that: the holder has its lock, and those who wait have their places', async () => {
    const { a, b, c, sections, lease, calls } = await scene();
    await redis().kill();
    await redis().restart({ keepData: true });
    await untilAllListen(3);
    expect(await eventually(() => lease.verify())).toBe(true);
    await untilQueued(a, 'x', b, c);
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(b, c)).toEqual([0, 1, 0, 1]);
    sections.expectSound(4);
    expect(sections.tokens[0]).toBeGreaterThan(lease.fencingToken);
    await expectNothingLeft(admin(), a, b, c);
  });

  it('CLIENT PAUSE for less than the lease: nobody loses anything, nor his place', async () => {
    const { a, b, c, sections, lease, calls } = await scene();
    await admin().call('CLIENT', 'PAUSE', 1_300, 'ALL'); // a heartbeat, and its time-out
    await pause(1_300);
    expect(await eventually(() => lease.verify())).toBe(true);
    await untilQueued(a, 'x', b, c);
    await lease.release();
    await Promise.all(calls);
    expect(sections.order(b, c)).toEqual([0, 1, 0, 1]);
    sections.expectSound(4);
    await expectNothingLeft(admin(), a, b, c);
  });

  it('a long script of somebody else, for longer than the lease: the holder knows that it lost it', async () => {
    const { a, b, c, sections, lease, calls } = await scene(500);
    await admin().config('SET', 'lua-time-limit', '50');
    const holding = sections.enter(a, lease, () => new Promise((resolve) => (lease.signal.onabort = resolve)));
    const standing = admin().eval(BUSY, 0, 1_200);
    await holding;
    expect(lease.isHeld()).toBe(false);
    const released = lease.release().catch(() => {});
    await standing;
    await Promise.all([...calls, released]);
    sections.expectSound(5);
    await expectNothingLeft(admin(), a, b, c);
  });

  it('out of memory: a release passes the lock on to those who wait, and who comes now is told the reason', async () => {
    const { a, b, c, sections, lease, calls } = await scene();
    const own = sections.call(a);
    await admin().config('SET', 'maxmemory', '1');
    try {
      const late = await start();
      const error = await rejection<LockUnavailableError>(late.locks.acquire('x', { waitMs: 300 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(/OOM.*Redis is out of memory/);
      await lease.release();
      await Promise.all([...calls, own]);
      await late.locks.shutdown(0);
    } finally {
      await admin().config('SET', 'maxmemory', '0');
    }
    expect(sections.order(a, b, c)).toEqual([1, 2, 0, 1, 2]);
    sections.expectSound(5);
    await expectNothingLeft(admin(), a, b, c);
  });
});

/** Does nothing for so many milliseconds. */
const BUSY = `
local function now() local time = redis.call('TIME') return time[1] * 1000 + time[2] / 1000 end
local till = now() + tonumber(ARGV[1])
while now() < till do end
`;
