import { runTypescript } from '../../../test/support/process/run-typescript.js';
import { useRedis } from '../../../test/support/redis/redis-server.js';

const LEASES = 100_000;

describe('locks that are acquired and released again and again', () => {
  const redis = useRedis();

  it('leave nothing behind, in every mode, and the process ends by itself', async () => {
    const main = new URL('leak-process-main.ts', import.meta.url);
    const { code, stdout, stderr } = await runTypescript(main, [redis().url, LEASES], ['--expose-gc']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual([]);
  });
});
