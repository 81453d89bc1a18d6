import { useApps } from '../../nest/nest-apps.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { RedissonService } from '../../support/redisson/redisson-service.js';

describe('the program of docs/migration/from-redisson.md', () => {
  const redis = useRedis();
  const start = useApps();

  it('takes turns with a Java thread', async () => {
    process.env.REDIS_URL = redis().url;
    const { AppModule, Payments } = await import('./payments.js');
    const { app } = await start({ imports: [AppModule] });
    const java = RedissonService.connect(redis().port);
    const thread = java.thread(1);
    const order: string[] = [];
    await app.get(Payments).pay('7', async () => {
      expect(await thread.tryLock('order:7')).toBe(false);
      expect(await thread.tryLock('order:8')).toBe(true);
      order.push('ours');
    });
    expect(await thread.tryLock('order:7')).toBe(true);
    const paying = app.get(Payments).pay('7', () => Promise.resolve(void order.push('ours again')));
    order.push('java');
    await thread.unlock('order:7');
    await paying;
    expect(order).toEqual(['ours', 'java', 'ours again']);
    java.close();
  });
});
