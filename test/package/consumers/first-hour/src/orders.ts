import { Injectable } from '@nestjs/common';
import { DistributedLock, key, RedisLockService } from 'nestjs-redis-lock';

@Injectable()
export class Orders {
  paying = 0;
  mostPayingAtOnce = 0;

  constructor(private readonly locks: RedisLockService) {}

  @DistributedLock({ key: (id: string) => key`order:${id}`, waitMs: 5_000 })
  async pay(id: string): Promise<string> {
    this.mostPayingAtOnce = Math.max(this.mostPayingAtOnce, ++this.paying);
    await new Promise((resolve) => setTimeout(resolve, 50));
    this.paying--;
    return `paid ${id}`;
  }

  @DistributedLock({ key: (id: string) => key`order:${id}`, onBusy: 'skip' })
  async remind(id: string): Promise<string | undefined> {
    return `reminded ${id}`;
  }

  ship(id: string): Promise<number> {
    return this.locks.using(key`order:${id}`, { waitMs: 0 }, async (lease) => lease.fencingToken);
  }
}
