import { randomUUID } from 'node:crypto';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import type { ClaimNode } from '../../../../lib/features/jobs/core/job-claims.js';
import { RedisLockStore } from '../../../../lib/redis/redis-lock-store.js';
import { lockConnection } from '../../../support/redis/lock-user.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { jobsOn } from '../../../support/world/forgetful.js';

const KEEP_MS = 60_000;

/** The claims of a quorum's node, on Redis and in memory alike. */
describe.each(['Redis', 'memory'])('claims of ticks in %s', (where) => {
  const redis = useRedis();
  let store: RedisLockStore | undefined;
  let claims: ClaimNode;

  beforeEach(async () => {
    if (where === 'memory') return void (claims = jobsOn());
    const keyPrefix = `claims-${randomUUID()}`;
    store = new RedisLockStore({ connection: lockConnection(redis().url), keyPrefix, instanceId: 'a', leaseMs: 1_000 });
    expect(await store.start(10_000)).toBe(true);
    claims = new RedisJobStore(store);
  });
  afterEach(() => store?.close());

  const TICK = { resource: 'cron:report', tick: 'now' };

  it('accept a claim that was returned for the same tick, though it is the last one by now', async () => {
    const due = { at: Date.now(), earlyMs: 20_000, lateMs: 30_000 };
    expect(await claims.exchange(TICK, { owner: 'a/1', to: 'a/1 x', claimTtlMs: KEEP_MS, due, isJudged: true })).toBe(
      'a/1 x',
    );
    expect(await claims.exchange(TICK, { owner: 'a/1', drop: 'b/1 y' })).toBe('a/1 x');
    expect(await claims.exchange(TICK, { owner: 'a/1', drop: 'a/1 x' })).toBe('returned');
    expect(await claims.exchange(TICK, { owner: 'b/1', to: 'b/1 z', claimTtlMs: KEEP_MS, due, isJudged: true })).toBe(
      'b/1 z',
    );
  });

  it('recognize a rerun when its claim was returned', async () => {
    await claims.exchange(TICK, { owner: 'a/1', to: 'a/1 x reruns', claimTtlMs: KEEP_MS });
    expect(await claims.exchange(TICK, { owner: 'a/1', drop: 'a/1 x reruns' })).toBe('returned reruns');
  });

  it('take no claim for a returned one, whatever the name of the instance', async () => {
    await claims.exchange(TICK, {
      owner: 'returned-goods-7/x/1',
      to: 'returned-goods-7/x/1 runs',
      claimTtlMs: KEEP_MS,
    });
    expect(await claims.exchange(TICK, { owner: 'returned-goods-7/x/1', to: 'b/1 runs', claimTtlMs: KEEP_MS })).toBe(
      'returned-goods-7/x/1 runs',
    );
  });
});
