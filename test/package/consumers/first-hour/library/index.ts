// A library that the application installs. It has the other format than the application, so it loads a copy of the lock
// package of its own.
import { Injectable, Module } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import * as locks from 'nestjs-redis-lock';
import { DistributedLock, InjectRedisLock, LeaderOnly, RedisLockService } from 'nestjs-redis-lock';
import { SingletonCron, SingletonJobs } from 'nestjs-redis-lock/schedule';

@Injectable()
export class LibraryService {
  ticks: string[] = [];
  led = 0;

  constructor(
    readonly byClass: RedisLockService,
    @InjectRedisLock() readonly byToken: RedisLockService,
    readonly jobs: SingletonJobs,
  ) {}

  @DistributedLock({ key: 'library', onBusy: 'skip' })
  async orSkip(): Promise<string | undefined> {
    return 'done';
  }

  @DistributedLock({ key: 'library', waitMs: 0 })
  async orThrow(): Promise<string> {
    return 'done';
  }

  @SingletonCron('* * * * * *', { name: 'library' })
  async tick(run: { tick: string }): Promise<void> {
    this.ticks.push(run.tick);
  }

  @Interval(100)
  @LeaderOnly('library')
  async lead(): Promise<void> {
    this.led++;
  }
}

@Module({ providers: [LibraryService], exports: [LibraryService] })
export class LibraryModule {}

export { locks };
