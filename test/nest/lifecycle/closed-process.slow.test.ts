import type { RedisLockModuleOptions } from 'nestjs-redis-lock';
import { closeInProcess } from '../../support/process/closing-process.js';
import { startRedis, useRedis } from '../../support/redis/redis-server.js';

describe('when app.close() has resolved, no socket and no timer of the library is open', () => {
  const redis = useRedis();
  const connections: [string, () => RedisLockModuleOptions][] = [
    ['a Redis', () => ({ connection: redis().url })],
    ['a Redis whose replicas have to have it', () => ({ connection: redis().url, durability: { replicas: 1 } })],
    ['a quorum', () => ({ quorum: { connections: [redis().url] } })],
    ['memory', () => ({ connection: 'memory:' })],
  ];
  it.each(connections)('of %s', async (_, options) => {
    expect(await closeInProcess(options())).toMatchObject({ left: [] });
  });

  it('of a Redis that hangs, which is not waited for', async () => {
    const hanging = await startRedis();
    try {
      const { left, closedInMs } = await closeInProcess({ connection: hanging.url }, hanging.pid);
      expect(left).toEqual([]);
      expect(closedInMs).toBeLessThan(5_000);
    } finally {
      process.kill(hanging.pid, 'SIGCONT');
      await hanging.stop();
    }
  });

  it('of a Redis that is down: no socket', async () => {
    const { left } = await closeInProcess({ connection: { host: '127.0.0.1', port: 1 } });
    expect(left).not.toContain('TCPSocketWrap');
  });
});
