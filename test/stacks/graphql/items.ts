import { Inject, Injectable, type Type } from '@nestjs/common';
import { Field, Int, ObjectType, Parent, Query, ResolveField, Resolver } from '@nestjs/graphql';
import DataLoader from 'dataloader';
import { DistributedLock, LockBusyError, LockHandler, RedisLockService } from 'nestjs-redis-lock';

@ObjectType()
export class Item {
  @Field(() => Int) readonly id: number;
  @Field(() => String, { nullable: true }) readonly eagerly: Promise<string> | undefined;

  @Field(() => [String], { nullable: 'itemsAndList' }) readonly listed: Promise<string>[] | undefined;

  constructor(id: number, eagerly?: Promise<string>, listed?: Promise<string>[]) {
    this.id = id;
    this.eagerly = eagerly;
    this.listed = listed;
  }
}

/** The observations for the tests. */
@Injectable()
export class Notes {
  readonly batches: number[][] = [];
  running = 0;
  mostAtOnce = 0;

  async work<T>(result: T): Promise<T> {
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.running);
    await new Promise((resolve) => setImmediate(resolve));
    this.running--;
    return result;
  }
}

abstract class WithLocks {
  @Inject() readonly locks!: RedisLockService;
  @Inject() readonly notes!: Notes;
}

@Resolver(() => Item)
export class ItemsResolver extends WithLocks {
  @Query(() => [Item])
  @LockHandler('basket')
  async items(): Promise<Item[]> {
    return this.#items();
  }

  @Query(() => [Item])
  @DistributedLock('basket')
  async lockedItems(): Promise<Item[]> {
    return this.#items();
  }

  /** The siblings of a list ask for this at the same time. */
  @ResolveField(() => String)
  @DistributedLock({ key: 'stock', waitMs: 10_000 })
  async stock(@Parent() { id }: Item): Promise<string> {
    return this.notes.work(`stock of ${id}`);
  }

  @ResolveField(() => String)
  @DistributedLock({ key: 'basket', waitMs: 10_000 })
  async ofBasket(): Promise<string> {
    return this.locks.current()!.resource;
  }

  @ResolveField(() => String)
  async held(): Promise<string> {
    return this.locks.current()?.resource ?? 'no lock';
  }

  @ResolveField(() => String, { nullable: true })
  @DistributedLock({ key: 'order:7', waitMs: 0 })
  async reserved(): Promise<string> {
    return 'reserved';
  }

  @ResolveField(() => String, { nullable: true })
  async busy(): Promise<string> {
    throw new LockBusyError('order:7', { attempts: 3, retryAfterMs: 1_200 });
  }

  #items(): Item[] {
    return [1, 2, 3, 4, 5].map((id) => new Item(id));
  }
}

/** The work of a parent in a promise that it returns. */
@Resolver(() => Item)
export class EagerResolver extends WithLocks {
  @Query(() => Item)
  @DistributedLock('basket')
  async eager(): Promise<Item> {
    const again = this.locks.using('basket', async () => 'locked again');
    again.catch(() => undefined);
    return new Item(1, again);
  }

  @Query(() => Item)
  failing(): Item {
    const failure = Promise.reject<string>(new LockBusyError('order:7', { attempts: 3, retryAfterMs: 1_200 }));
    failure.catch(() => undefined);
    return new Item(1, failure, [failure, Promise.resolve('ok')]);
  }

  @Query(() => Item)
  @DistributedLock({ key: 'basket', mode: 'reentrant' })
  async eagerReentrant(): Promise<Item> {
    return new Item(
      1,
      this.locks.using('basket', { mode: 'reentrant' }, async () => 'joined'),
    );
  }
}

/** One loader for each request would stand in the context; here each test has an application of its own. */
@Resolver(() => Item)
export class LoadingResolver extends WithLocks {
  readonly #plain = new DataLoader((ids: readonly number[]) => this.#load(ids), { cache: false });
  readonly #locking = new DataLoader(
    (ids: readonly number[]) =>
      this.locks.using(
        ids.map((id) => `item:${id}`),
        { waitMs: 10_000 },
        () => this.#load(ids),
      ),
    { cache: false },
  );
  readonly #impatient = new DataLoader(
    (ids: readonly number[]) => this.locks.using('order:7', { waitMs: 0 }, () => this.#load(ids)),
    { cache: false },
  );

  /** One batch under all locks. */
  @ResolveField(() => String)
  async batched(@Parent() { id }: Item): Promise<string> {
    return this.#locking.load(id);
  }

  /** The siblings wait for each other before they come to the loader. */
  @ResolveField(() => String)
  @DistributedLock({ key: 'stock', waitMs: 10_000 })
  async oneByOne(@Parent() { id }: Item): Promise<string> {
    return this.#plain.load(id);
  }

  /** Each holds the lock of its item when it comes to the loader, whose batch is work of the first. */
  @ResolveField(() => String, { nullable: true })
  @DistributedLock(({ id }: Item) => `item:${id}`)
  async insideOut(@Parent() { id }: Item): Promise<string> {
    return this.#locking.load(id);
  }

  @ResolveField(() => String, { nullable: true })
  async impatient(@Parent() { id }: Item): Promise<string> {
    return this.#impatient.load(id);
  }

  async #load(ids: readonly number[]): Promise<string[]> {
    this.notes.batches.push([...ids]);
    return ids.map((id) => `item ${id}`);
  }
}

@ObjectType()
class Author {
  @Field() readonly name: string = 'Agatha';
}

/** `@LockHandler` on a field resolver: Nest runs the interceptor only with `fieldResolverEnhancers`. */
@Resolver(() => Author)
export class AuthorResolver {
  @Inject() readonly locks!: RedisLockService;

  @Query(() => Author)
  author(): Author {
    return new Author();
  }

  @ResolveField(() => String)
  @LockHandler('books')
  books(): string {
    return this.locks.current()?.resource ?? 'no lock';
  }
}

export const ITEMS: Type[] = [ItemsResolver, EagerResolver, LoadingResolver, Notes];
