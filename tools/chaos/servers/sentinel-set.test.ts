import { LockClient } from '../../../lib/core/lock-client.js';
import { RedisLockStore } from '../../../lib/redis/redis-lock-store.js';
import { eventually } from '../../../test/support/expect/eventually.js';
import { track } from '../../../test/support/expect/tracked.js';
import { SentinelSet } from '../../../test/support/redis/sentinel-set.js';

const LEASE_MS = 20_000;

describe('a primary, a replica and a sentinel', () => {
  let set: SentinelSet;
  let locks: LockClient;
  beforeAll(async () => {
    set = await SentinelSet.start();
    const store = new RedisLockStore({
      connection: set.connection,
      keyPrefix: 'lock',
      instanceId: 'a',
      leaseMs: LEASE_MS,
    });
    locks = new LockClient({ store, defaults: { leaseMs: LEASE_MS, waitMs: 20_000, unavailableMs: Infinity } });
    await store.start(5_000);
  });
  afterAll(async () => {
    await locks.shutdown(0);
    await set[Symbol.asyncDispose]();
  });
  const runId = async (): Promise<string> => /run_id:(\w+)/.exec(await set.admin().info('server'))![1]!;

  it('a fail-over to an up to date replica keeps what was written, and locks go on', async () => {
    const before = await runId();
    const lease = await locks.acquire('x');
    const written = Array.from({ length: 200 }, (_, i) => [`key-${i}`, 'value'] as const);
    await Promise.all(written.map(([key, value]) => set.admin().set(key, value)));
    await set.failOver({ lagging: false });
    expect(await runId()).not.toBe(before);
    expect(await set.admin().exists(written.map(([key]) => key))).toBe(written.length);
    expect(await eventually(() => lease.verify())).toBe(true);
    const other = await locks.acquire('y');
    expect(other.fencingToken).toBeGreaterThan(lease.fencingToken);
    for (const held of [lease, other]) await held.release();
  });

  it('a fail-over to a lagging replica loses what was written last, and can be repeated', async () => {
    for (let i = 0; i < 2; i++) {
      const old = set.admin();
      const failOver = set.failOver({ lagging: true });
      const tracked = track(failOver);
      let last = 0;
      const write = (): Promise<unknown> => old.set('last', last + 1).catch(() => undefined);
      while (tracked.state === 'pending' && (await write()) === 'OK') last++;
      await failOver;
      expect(last).toBeGreaterThan(1);
      expect(Number(await set.admin().get('last'))).toBeLessThan(last);
      await set.admin().del('last');
    }
    const next = await eventually(() => locks.acquire('z'));
    await next.release();
  });
});
