import { runUnbundled } from '../../support/process/run-typescript.js';
import { useRedis } from '../../support/redis/redis-server.js';

describe('@nestjs/bullmq on Nest 11, with BullMQ 5', () => {
  const redis = useRedis();

  it('puts a job off while the lock is busy, locks it then, and refuses @LockHandler on a processor', async () => {
    const { code, stdout, stderr } = await runUnbundled(new URL('jobs-main.ts', import.meta.url), [redis().url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      seen: [['ann', 'customer:ann', false]],
      attemptsMade: 1,
      refusal: expect.stringMatching(/^NeverLocked\.process has @LockHandler, which would never run/),
    });
  });
});
