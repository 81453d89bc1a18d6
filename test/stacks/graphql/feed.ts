import { Inject } from '@nestjs/common';
import { Int, Query, Resolver, Subscription } from '@nestjs/graphql';
import { DistributedLock, LockBusyError, LockHandler, RedisLockService } from 'nestjs-redis-lock';
import { gate } from '../../support/expect/tracked.js';

type Prices = AsyncGenerator<{ [field: string]: number }, void, undefined>;

/** Subscriptions under the lock `prices`. */
@Resolver()
export class FeedResolver {
  @Inject() readonly locks!: RedisLockService;
  readonly notes: string[] = [];
  /** The next event, for which the handlers wait. */
  news = gate();

  @Query(() => Int)
  one(): number {
    return 1;
  }

  @Subscription(() => Int)
  @LockHandler({ key: 'prices', waitMs: Infinity })
  async *prices(): Prices {
    try {
      for (let price = 1; price <= 2; price++) {
        this.#note(`price ${price}`);
        yield { prices: price };
      }
      await this.news.opened;
    } finally {
      this.#note('end');
    }
  }

  @LockHandler('prices')
  @Subscription(() => Int, { filter: ({ even }: { even: number }) => even % 2 === 0 })
  async *even(): Prices {
    for (let price = 1; price <= 4; price++) yield { even: price };
  }

  /** The event never comes. */
  @Subscription(() => Int)
  @LockHandler('prices')
  async silent(): Promise<Prices> {
    return this.#silent();
  }

  @Subscription(() => Int)
  @LockHandler({ key: 'prices', leaseMs: 50, watchdog: false })
  async lost(): Promise<Prices> {
    return this.#silent();
  }

  @Subscription(() => Int)
  @LockHandler({ key: 'prices', waitMs: 0, onBusy: 'skip' })
  async *skipped(): Prices {
    yield { skipped: 1 };
  }

  @Subscription(() => Int)
  @LockHandler({ key: 'prices', waitMs: 0 })
  async *impatient(): Prices {
    yield { impatient: 1 };
  }

  @Subscription(() => Int)
  async *breaks(): Prices {
    yield { breaks: 1 };
    throw new LockBusyError('order:7', { attempts: 3, retryAfterMs: 1_200 });
  }

  @Subscription(() => Int)
  // The compiler refuses it, too.
  @(DistributedLock('prices') as MethodDecorator)
  async refused(): Promise<Prices> {
    return this.#silent();
  }

  async *#silent(): Prices {
    this.#note('waits');
    await this.news.opened;
    yield { silent: 1 };
  }

  #note(what: string): void {
    this.notes.push(`${what}, ${this.locks.current()?.resource ?? 'no lock'}`);
  }
}
