import { setTimeout } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DistributedLock, key, RedisLockService } from 'nestjs-redis-lock';
import {
  SingletonCron,
  type SingletonRun,
} from 'nestjs-redis-lock/schedule';

type Work = () => Promise<void>;

/** The locks of the old release. */
export abstract class OldLocks {
  /** Waits for a lock, and runs the work under it. */
  abstract using(name: string, work: Work): Promise<void>;
  /** Takes a lock without waiting, and lets it expire after `ms`. */
  abstract take(name: string, ms: number): Promise<boolean>;
}

@Injectable()
export class Orders {
  constructor(
    private readonly locks: RedisLockService,
    private readonly old: OldLocks,
  ) {}

  @DistributedLock((id: string) => key`order:${id}`)
  async pay(id: string, charge: Work) {
    await this.old.using(`order:${id}`, charge);
  }

  async ship(id: string, send: Work) {
    const name = key`parcel:${id}`;
    await this.locks.using(name, () => this.old.using(name, send));
  }

  @SingletonCron('*/2 * * * * *', {
    name: 'outbox',
    leaseMs: 1_000,
    onCrash: 'retry',
  })
  async outbox({ rerun }: SingletonRun) {
    while (!(await this.old.take('outbox', 1_800))) {
      if (!rerun) return; // an old instance runs this tick
      await setTimeout(100); // the run that died still has the lock
    }
    await this.sendAll();
  }

  async sendAll() {}
}
