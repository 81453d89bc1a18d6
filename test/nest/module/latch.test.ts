import { Injectable } from '@nestjs/common';
import { getRedisLockToken, LockShutdownError, RedisLockService } from 'nestjs-redis-lock';
import { rejection } from '../../support/expect/eventually.js';
import { settle } from '../../support/world/fake-clock.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { inMemory, useApps } from '../nest-apps.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { track } from '../../support/expect/tracked.js';

@Injectable()
class Import {
  constructor(private readonly locks: RedisLockService) {}

  readonly done = () => this.locks.latch('import', 2);
}

describe('a latch of the lock service', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useApps();

  it.each([
    ['in memory', () => 'memory:'],
    ['on Redis', () => redis().url],
  ])('opens for those who wait (%s), and a second lock service has its own', async (where, connection) => {
    const { app } = await start({
      imports: [
        inMemory({ connection: connection() }),
        inMemory({ connection: connection(), service: 'billing', keyPrefix: 'billing' }),
      ],
      providers: [Import],
    });
    const { done } = app.get(Import);
    const waiting = done().wait();
    const billing = app.get<RedisLockService>(getRedisLockToken('billing')).latch('import', 5);
    expect([await done().countDown(), await done().remaining(), await billing.remaining()]).toEqual([1, 1, 5]);
    expect(await done().countDown()).toBe(0);
    await waiting;
    expect(await admin().keys('*')).toEqual(where === 'in memory' ? [] : ['lock:{import}:latch']);
  });

  it('is waited for in vain when the application shuts down', async () => {
    const { app } = await start({ imports: [inMemory()], providers: [Import] });
    const waiting = track(app.get(Import).done().wait({ waitMs: Infinity }));
    await settle();
    expect(waiting.state).toBe('pending');
    await app.close();
    expect(waiting.error).toBeInstanceOf(LockShutdownError);
    expect(await rejection(app.get(Import).done().wait())).toBeInstanceOf(LockShutdownError);
  });

  it('opens between two applications on one Redis', async () => {
    const options = { imports: [inMemory({ connection: redis().url })], providers: [Import] };
    const [one, other] = [await start(options), await start(options)];
    const waiting = one.app.get(Import).done().wait();
    for (const id of ['a', 'a', 'b']) await other.app.get(Import).done().countDown({ id });
    await waiting;
    expect(await one.app.get(Import).done().remaining()).toBe(0);
  });
});
