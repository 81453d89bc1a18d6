import type { LockOptions } from '../../../lib/core/api/lock-options.js';
import { CriticalSections } from '../../support/expect/critical-sections.js';
import {
  commandCounts,
  expectNothingLeft,
  type LockInstance,
  resetCounts,
  untilQueued,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

/** No row ends because this machine is slow. */
const ROWS: LockOptions = { cohortMs: 60_000 };

describe('leases that stay in the process', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  /** How often the instance hands its lock to Redis and waits again in one step. */
  const countRotations = ({ store }: LockInstance) => {
    const counter = { count: 0 };
    const rotate = store.rotate.bind(store);
    store.rotate = (...args) => {
      counter.count++;
      return rotate(...args);
    };
    return counter;
  };
  /** So many calls of `b` wait for what `a` holds; then they run. Gives how many scripts Redis was asked to run for it. */
  const run = async (a: LockInstance, b: LockInstance, count: number, options: LockOptions) => {
    const sections = new CriticalSections();
    const lease = await a.locks.acquire('x');
    const calls = sections.calls(count, b, options);
    await untilQueued(a, 'x', b);
    await resetCounts(admin());
    await lease.release();
    await calls;
    sections.expectSound(count);
    return { rows: sections.rows(), commands: (await commandCounts(admin())).evalsha! };
  };

  it('an acquisition and a release that nobody disturbs are two commands', async () => {
    const { locks } = await start();
    await (await locks.acquire('x')).release();
    await resetCounts(admin());
    for (let i = 0; i < 20; i++) await (await locks.acquire('x')).release();
    expect(await commandCounts(admin())).toMatchObject({ evalsha: 40 });
    expect((await commandCounts(admin())).eval).toBeUndefined();
  });

  it('33 waiting calls are 32 leases in a row, one rotation, and one lease', async () => {
    const [a, b] = [await start(), await start()];
    const rotations = countRotations(b);
    const { rows, commands } = await run(a, b, 33, ROWS);
    expect(rows).toEqual([32, 1]);
    expect(rotations.count).toBe(1);
    // The release before, the rotation, the last release. One more where a heartbeat falls between.
    expect(commands).toBeLessThanOrEqual(3 + 1);
  });

  it.each([
    [1, [1]],
    [32, [32]],
    [300, [32, 32, 32, 32, 32, 32, 32, 32, 32, 12]],
  ])('%i calls that wait in one process cost Redis a command for each 32 of them', async (count, rows) => {
    const result = await run(await start(), await start(), count, ROWS);
    expect(result.rows).toEqual(rows);
    expect(result.commands).toBeLessThanOrEqual(1 + rows.length + 2);
  });

  it('in strict turns, a lease of an instance that waits again costs one command', async () => {
    const instances = await Promise.all([start(), start(), start()]);
    const sections = new CriticalSections();
    await sections.call(instances[0]!);
    await resetCounts(admin());
    const caller = async (instance: LockInstance): Promise<void> => {
      for (let i = 0; i < 10; i++) await sections.call(instance, { cohort: 0 });
    };
    await Promise.all([...instances, ...instances, ...instances].map(caller));
    sections.expectSound(91);
    const { evalsha } = await commandCounts(admin());
    // Not two, as without a rotation. Each instance comes and goes once, and heartbeats fall in on a slow machine.
    expect(evalsha).toBeGreaterThanOrEqual(90);
    expect(evalsha).toBeLessThan(90 * 1.4);
  });

  it.each<[string, LockOptions, number[]]>([
    ['cohort', { ...ROWS, cohort: 4 }, [5, 5]],
    ['cohort 0', { ...ROWS, cohort: 0 }, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],
    ['cohortMs 0', { cohortMs: 0 }, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],
    ['a fixed lease', { ...ROWS, watchdog: false }, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],
    ['maxHoldMs', { ...ROWS, maxHoldMs: 5_000 }, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]],
    ['nothing of these', ROWS, [10]],
  ])('%s ends a row', async (_what, options, rows) => {
    expect((await run(await start(), await start(), 10, options)).rows).toEqual(rows);
  });

  it('a row ends with the first lease that is longer than cohortMs', async () => {
    const [a, b] = [await start(), await start()];
    const sections = new CriticalSections();
    const options = { cohortMs: 20 };
    const slow = () => new Promise((resolve) => setTimeout(resolve, 25));
    const lease = await a.locks.acquire('x');
    const calls = [sections.calls(3, a, options), sections.calls(3, b, options, slow)];
    await untilQueued(a, 'x', b);
    await new Promise((resolve) => setTimeout(resolve, 25));
    await lease.release();
    await Promise.all(calls);
    const order = sections.order(a, b);
    // One of b's in each row as long as a waits, and several of a's where they are quick.
    expect(order.join('')).toMatch(/^(10+)+1*$/);
    sections.expectSound(6);
  });

  it('a lock that is deleted in the middle of a row is lost by the lease that has it, and the next is granted anew', async () => {
    const [a, b] = [await start(), await start()];
    const sections = new CriticalSections();
    const reasons: unknown[] = [];
    const losing = async (lease: { signal: AbortSignal }): Promise<void> => {
      await admin().del('lock:{x}');
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
      reasons.push(lease.signal.reason);
    };
    const options = { ...ROWS, leaseMs: 600 };
    const lease = await b.locks.acquire('x', options);
    const calls = [sections.call(b, options), sections.call(b, options, losing), sections.call(b, options)];
    await lease.release();
    await Promise.all(calls);
    expect(reasons).toEqual([expect.objectContaining({ reason: 'takenOver' })]);
    sections.expectSound(3);
    expect(sections.rows()).toEqual([2, 1]);
    await expectNothingLeft(admin(), a, b);
  });

  it('a row is renewed as one lease: it lasts longer than the lease that was granted', async () => {
    const [a, b] = [await start(), await start()];
    const sections = new CriticalSections();
    const options = { ...ROWS, leaseMs: 1_500 };
    const slow = () => new Promise((resolve) => setTimeout(resolve, 250));
    await Promise.all([sections.calls(8, b, options, slow), sections.calls(2, a, options)]);
    sections.expectSound(10);
    expect(sections.rows().toSorted((x, y) => x - y)).toEqual([2, 8]);
    expect(b.events.filter(({ type }) => type === 'lost')).toEqual([]);
  });
});
