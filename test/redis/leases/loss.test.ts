import type { Lease } from '../../../lib/kernel/api/lease.js';
import { LeaseLostError } from '../../../lib/kernel/api/lease-errors.js';
import { untilAborted } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

/** Ample for a timer on a busy machine, and below every time-out of a connection (3 s and more). */
const LATE_MS = 2_000;

describe('the loss of a lease', () => {
  const redis = useRedis();
  useAdmin(() => redis().url); // empties it before each test
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  /** The signal may not fire later than the deadline that the lease has now. */
  const expectAbortAtDeadline = async (lease: Lease, leaseMs: number): Promise<void> => {
    const remainingMs = lease.remainingMs();
    expect(remainingMs).toBeLessThanOrEqual(leaseMs);
    const from = performance.now();
    await untilAborted(lease.signal);
    expect(performance.now() - from).toBeLessThanOrEqual(remainingMs + LATE_MS);
    expect(lease.isHeld()).toBe(false);
    expect(lease.remainingMs()).toBe(0);
    const reason: unknown = lease.signal.reason;
    expect(reason).toBeInstanceOf(LeaseLostError);
    expect(reason).toMatchObject({ reason: 'notRenewed', fencingToken: lease.fencingToken });
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
  };

  it('is signalled by the deadline while Redis stands still', async () => {
    const { locks } = await start();
    const lease = await locks.acquire('a', { leaseMs: 600 });
    await redis().pause();
    await expectAbortAtDeadline(lease, 600);
    await redis().resume();
  });

  it('is the first thing a stopped process sees when it is continued', async () => {
    const stopped = await startProcess(300);
    const { fencingToken } = await stopped.ask('acquire', 'x');
    const onContinue = stopped.ask('stop', 'x');
    const { locks } = await start();
    const next = await locks.acquire('x'); // only possible once the lease in Redis is over
    expect(await stopped.continue(onContinue)).toEqual({
      isHeld: false,
      aborted: true,
      reason: 'notRenewed',
      fencingToken,
    });
    expect(next.fencingToken).toBeGreaterThan(fencingToken);
    expect(await next.verify()).toBe(true);
  });

  it('an event loop that is blocked past the lease sees the loss before any timer runs', async () => {
    const { locks, store } = await start();
    const lease = await locks.acquire('x', { leaseMs: 200 });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250);
    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.aborted).toBe(true);
    expect(await store.inspect('x')).toMatchObject({ holders: [] });
  });
});
