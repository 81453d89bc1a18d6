import { useRedis } from '../../support/redis/redis-server.js';
import { runTypescript } from '../../support/process/run-typescript.js';

describe('a primary that becomes a replica while many calls are under way', () => {
  const redis = useRedis();

  it('is left once, and asked again when it is a primary, without a warning of Node', async () => {
    const file = new URL('replica-process-main.ts', import.meta.url);
    const { code, stdout, stderr } = await runTypescript(file, [redis().url]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '100 acquired\n'.repeat(3), stderr: '' });
  });
});
