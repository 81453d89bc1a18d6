import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { LockClient } from '../../../lib/kernel/lock-client.js';
import { rejection } from '../../support/expect/eventually.js';

describe('a Redis that has lost its locks and grants them again after 1 s', () => {
  const store = () => new MemoryLockStore({ instanceId: 'one' });
  const locks = new LockClient({ store: store(), defaults: { leaseMs: 1_000, restartQuarantineMs: 1_000 } });
  const expectRefused = async (call: () => unknown) => {
    const error = await rejection<InvalidLockOptionsError>((async () => call())());
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(error.option).toBe('leaseMs');
    expect(error.message).toMatch(/^leaseMs must be at most restartQuarantineMs \(1000\), not 1001: .*Raise restart/);
  };
  afterAll(() => locks.shutdown(0));

  it.each([
    ['acquire', () => locks.acquire('a', { leaseMs: 1_001 })],
    ['tryAcquire', () => locks.tryAcquire('a', { leaseMs: 1_001 })],
    ['using', () => locks.using('a', { leaseMs: 1_001 }, () => undefined)],
    ['a permit', () => locks.semaphore('s', { permits: 1 }).acquire({ leaseMs: 1_001 })],
    ['a campaign', () => locks.campaign('a', { leaseMs: 1_001 })],
  ])('allows no longer lease: %s', async (_, call) => {
    await expectRefused(call);
  });

  it('allows no extension beyond that', async () => {
    const lease = await locks.acquire('a');
    await expectRefused(() => lease.extend(1_001));
    expect(lease.isHeld()).toBe(true);
    await lease.extend(1_000);
    await lease.release();

    const both = await locks.acquire(['a', 'b']);
    await expectRefused(() => both.extend(1_001));
    await both.release();
  });
});
