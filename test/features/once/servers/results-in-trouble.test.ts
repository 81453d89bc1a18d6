import { OnceCalls } from '../../../../lib/features/once/core/once-calls.js';
import { RedisResultStore } from '../../../../lib/features/once/redis/redis-result-store.js';
import { eventually } from '../../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { documentedUser, LOCKS_AS_USER } from '../../../support/redis/lock-user.js';
import { useRedis } from '../../../support/redis/redis-server.js';

const OPTIONS = { resultTtlMs: 600_000 };
const USER = LOCKS_AS_USER ? documentedUser().name : 'default';
const RESULT = 'lock:{once:report}:result';

describe('a result of once', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  let once: OnceCalls;
  let runs: number;

  beforeEach(async () => {
    const { locks, store } = await start();
    once = new OnceCalls(locks.deps, locks.leases, locks.watches, new RedisResultStore(store));
    runs = 0;
  });

  const work = async () => ++runs;

  it('is stored without memory to spare, because its lock is deleted first', async () => {
    try {
      const fill = async () => {
        await admin().config('SET', 'maxmemory', 1);
        return work();
      };
      expect(await once.run('report', OPTIONS, fill)).toBe(1);
      expect(await admin().get(RESULT)).toBe('=1');
    } finally {
      await admin().config('SET', 'maxmemory', 0);
    }
  });

  it.each<[string, () => Promise<unknown>, () => Promise<unknown>]>([
    [
      'for want of replicas',
      () => admin().config('SET', 'min-replicas-to-write', 1),
      () => admin().config('SET', 'min-replicas-to-write', 0),
    ],
    [
      'for want of rights',
      () => admin().acl('SETUSER', USER, '-evalsha'),
      () => admin().acl('SETUSER', USER, '+evalsha'),
    ],
  ])('is returned at once if Redis refuses to store it %s, and is stored later', async (_, refuse, accept) => {
    try {
      const refused = async () => {
        await refuse();
        return work();
      };
      expect(await once.run('report', OPTIONS, refused)).toBe(1);
      expect(await admin().exists(RESULT)).toBe(0);
    } finally {
      await accept();
    }
    await eventually(async () => expect(await admin().get(RESULT)).toBe('=1'));
    expect(await once.run('report', OPTIONS, work)).toBe(1);
  });

  it('takes the place of what another program has written, even if that is no text', async () => {
    await admin().set(RESULT, Buffer.from('3dff7b', 'hex'));
    expect(await once.run('report', { ...OPTIONS, waitMs: 2_000 }, work)).toBe(1);
    expect(await admin().get(RESULT)).toBe('=1');
  });
});
