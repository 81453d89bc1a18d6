import { CacheInterceptor, CacheModule } from '@nestjs/cache-manager';
import { Controller, Get, Param, UseInterceptors } from '@nestjs/common';
import { Keyv } from 'keyv';
import { key, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { useRedis } from '../../support/redis/redis-server.js';
import { inMemory, useApps } from '../../nest/nest-apps.js';
import { Prices } from './cached-prices.js';

@Controller()
class Pages {
  readonly ran: string[] = [];

  @UseInterceptors(CacheInterceptor)
  @LockHandler((context) => key`page:${context.getArgByIndex(0).params.id}`)
  @Get('cache-above/:id')
  async cacheAbove(@Param('id') id: string): Promise<string> {
    return this.#run(id);
  }

  @LockHandler((context) => key`page:${context.getArgByIndex(0).params.id}`)
  @UseInterceptors(CacheInterceptor)
  @Get('cache-below/:id')
  async cacheBelow(@Param('id') id: string): Promise<string> {
    return this.#run(id);
  }

  #run(id: string): string {
    this.ran.push(id);
    return `page ${id}`;
  }
}

describe('@nestjs/cache-manager', () => {
  const redis = useRedis();
  const start = useApps();

  it.each([
    ['cache-above', ['page:7', 'page:7']],
    ['cache-below', ['page:7']],
  ])('the lower decorator is the outer one: what two requests lock with %s', async (path, locked) => {
    const { app, url } = await start({ imports: [inMemory(), CacheModule.register()], controllers: [Pages] });
    const acquired: string[] = [];
    app.get(RedisLockService).observe((event) => event.type === 'acquired' && acquired.push(event.resource));
    for (const _ of [1, 2]) expect(await (await fetch(`${url}/${path}/7`)).text()).toBe('page 7');
    expect(app.get(Pages).ran).toEqual(['7']);
    expect(acquired).toEqual(locked);
  });

  it('of 40 calls on two instances that find the cache empty, one loads', async () => {
    const store = new Map<string, unknown>(); // what both share: a Redis in production
    const startInstance = async () => {
      const cache = CacheModule.register({ stores: [new Keyv({ store })] });
      const { app } = await start({ imports: [inMemory({ connection: redis().url }), cache], providers: [Prices] });
      return app.get(Prices);
    };
    const instances = [await startInstance(), await startInstance()];
    const calls = Array.from({ length: 40 }, (_, index) => instances[index % 2]!.current());
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['loaded 1 times']));
    expect(instances[0]!.loads + instances[1]!.loads).toBe(1);
  });
});
