import type { Blocker } from '../../../../lib/features/fleet/core/contention/blockers.js';
import { eventually } from '../../../support/expect/eventually.js';
import { type LockProcess, useProcesses } from '../../../support/process/lock-process.js';
import { useAdmin } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const LEASE_MS = 3_000;
const CALLS = 3;

describe('a process whose calls wait for another process', () => {
  const redis = useRedis();
  useAdmin(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  let holder: LockProcess;
  let waiter: LockProcess;

  beforeEach(async () => {
    [holder, waiter] = await Promise.all([startProcess(LEASE_MS), startProcess(LEASE_MS)]);
    // The first look begins to count.
    expect(await waiter.ask('contention')).toMatchObject({ groups: [], blockers: [] });
  });

  /** Resolves when all calls wait. Each of them ends when it has had the lock. */
  const startToWait = async (): Promise<{ work: Promise<unknown> }> => {
    const work = waiter.ask('increment', 'orders:7', 'counter', 1, CALLS);
    await eventually(async () => {
      expect((await waiter.ask('contention')).groups).toMatchObject([{ group: 'orders', waiting: CALLS }]);
    });
    return { work };
  };
  /** Those in the other process. */
  const blockers = async (): Promise<Blocker[]> =>
    (await waiter.ask('contention')).blockers.filter((blocker) => blocker.holder !== 'orders');

  it('names the work that it waits for by its label, and reports a slow holder for as long as that renews', async () => {
    const before = performance.now();
    await holder.ask('acquire', 'orders:7', { label: { group: 'Report.run' } });
    const { work } = await startToWait();
    const from = performance.now();
    const early = await waiter.ask('explain', 'orders:7');
    expect(early.text).toContain(`"orders:7" has been held by ${holder.instanceId} (Report.run) for `);
    expect(early.text).toContain(`${CALLS} calls of this process are waiting for it`);
    // Held for longer than its lease: it can only have been renewed.
    const late = await eventually(async () => {
      const explanation = await waiter.ask('explain', 'orders:7');
      expect(explanation.cause).toBe('holderSlow');
      return explanation;
    });
    expect(late.state.holders).toMatchObject([{ instanceId: holder.instanceId, label: { group: 'Report.run' } }]);
    expect((await holder.ask('explain', 'orders:7')).text).toContain(
      'has been held by a call of this process (orders) for ',
    );

    const leastMs = performance.now() - from;
    await holder.ask('release', 'orders:7');
    await work;
    const mostMs = performance.now() - before;
    const [row, ...others] = await blockers();
    expect(others).toEqual([]);
    expect(row).toMatchObject({ waiter: 'orders', holder: 'Report.run', calls: CALLS });
    expect(row!.text).toMatch(/^3 calls of orders waited \d\S* s in total for Report\.run$/);
    expect(row!.waitedMs).toBeGreaterThan(CALLS * leastMs - 5);
    expect(row!.waitedMs).toBeLessThan(CALLS * mostMs);
    // Waits are shared out completely, and counted once.
    const { groups, blockers: all } = await waiter.ask('contention');
    const sumMs = all.reduce((sum, { waitedMs }) => sum + waitedMs, 0);
    expect(Math.abs(sumMs - groups[0]!.wait.totalMs)).toBeLessThan(10);
    // The holder has waited for nothing.
    expect((await holder.ask('contention')).blockers).toEqual([]);
  }, 40_000);

  it('knows the last renewal of a holder in another process, however long ago, and its death', async () => {
    await holder.ask('acquire', 'orders:7', { leaseMs: 3_000 });
    const text = async () => (await waiter.ask('explain', 'orders:7')).text;
    await eventually(async () =>
      expect(await text()).toMatch(/It was last renewed .* ago, in time: .*Nothing is wrong: /),
    );
    await holder.kill();
    await eventually(async () => expect(await text()).toMatch(/though its process should renew it every 1 s: /));
  }, 40_000);

  it('names the process of a holder without a label, and reports its death', async () => {
    await holder.ask('acquire', 'orders:7');
    const { work } = await startToWait();
    await holder.kill();
    await eventually(async () => expect((await waiter.ask('explain', 'orders:7')).cause).toBe('holderDead'));
    await work;
    const { instanceId } = holder;
    expect(await blockers()).toMatchObject([{ waiter: 'orders', holder: '_unknown', instanceId, calls: CALLS }]);
    const { cause, text } = await waiter.ask('explain', 'orders:7');
    expect({ cause, text }).toEqual({
      cause: 'free',
      text: '"orders:7" is free: no process holds it, and none waits for it.',
    });
  }, 40_000);
});
