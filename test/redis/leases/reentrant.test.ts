import { eventually } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const REENTRANT = { mode: 'reentrant' } as const;

describe('the reentrant mode', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('keeps the depth in a field of the hash; only the last release frees it', async () => {
    const { locks } = await start();
    const tokens: number[] = [];
    await locks.using('a', REENTRANT, async ({ fencingToken }) => {
      tokens.push(fencingToken);
      const owner = (await admin().hget('lock:{a}', 'owner'))!;
      expect(await admin().hget('lock:{a}', 'depth')).toBeNull();
      await locks.using('a', REENTRANT, async (inner) => {
        tokens.push(inner.fencingToken);
        await locks.using('a', REENTRANT, async () => {
          await eventually(async () => expect(await admin().hget('lock:{a}', 'depth')).toBe('3'));
        });
        await eventually(async () => expect(await admin().hget('lock:{a}', 'depth')).toBe('2'));
      });
      await eventually(async () => expect(await admin().hget('lock:{a}', 'depth')).toBe('1'));
      expect(await admin().hget('lock:{a}', 'owner')).toBe(owner);
    });
    expect(tokens[1]).toBe(tokens[0]);
    expect(await admin().keys('*')).toEqual(['lock:fence']);
  });
});
