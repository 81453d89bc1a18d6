import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import Redlock, { ExecutionError } from 'redlock';
import { OldLocks } from './orders.js';

@Injectable()
export class RedlockLocks extends OldLocks {
  private readonly redlock = new Redlock(
    [new Redis(process.env.REDIS_URL!)],
    // A lock is renewed when half of its time is left.
    { retryDelay: 20, retryJitter: 10, automaticExtensionThreshold: 2_500 },
  );

  async using(name: string, work: () => Promise<void>) {
    // Don't put retryCount into the settings above: it would also apply to
    // releases, and retry the release of a lost lock 500 times, or forever
    // with -1.
    const patience = { retryCount: 500 };
    await this.redlock.using([`locks:${name}`], 5_000, patience, work);
  }

  async take(name: string, ms: number) {
    const once = { retryCount: 0 };
    try {
      await this.redlock.acquire([`locks:${name}`], ms, once);
      return true;
    } catch (error) {
      if (error instanceof ExecutionError) return false;
      throw error;
    }
  }
}
