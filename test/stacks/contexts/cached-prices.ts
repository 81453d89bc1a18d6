import { type Cache, CACHE_MANAGER } from '@nestjs/cache-manager';
import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-redis-lock';

@Injectable()
export class Prices {
  loads = 0;

  constructor(@Inject(CACHE_MANAGER) private readonly cache: Cache) {}

  async current(): Promise<string> {
    return (await this.cache.get<string>('prices')) ?? this.load();
  }

  // One caller across all instances loads. The others wait for it and check
  // again.
  @DistributedLock({ key: 'prices', waitMs: 10_000 })
  async load(): Promise<string> {
    const cached = await this.cache.get<string>('prices');
    if (cached !== undefined) return cached;
    const prices = `loaded ${++this.loads} times`;
    // before the lock is released
    await this.cache.set('prices', prices, 60_000);
    return prices;
  }
}
