import {
  defineConfig,
  Entity,
  EntityManager,
  MikroORM,
  type PostgreSqlDriver,
  PrimaryKey,
  Property,
  SqlEntityManager,
  Transactional,
  type TransactionOptions,
} from '@mikro-orm/postgresql';
import { Injectable, Module } from '@nestjs/common';
import {
  DistributedLock,
  key,
  RedisLockModule,
  TransactionScope,
} from 'nestjs-redis-lock';

@Entity()
class Stock {
  @PrimaryKey({ type: 'text' })
  id!: string;

  @Property({ type: 'integer' })
  count!: number;
}

const transactions = new TransactionScope();

// Every transactional() and @Transactional() goes through it.
class ScopedEntityManager extends SqlEntityManager<PostgreSqlDriver> {
  override transactional<T>(
    work: (em: this) => T | Promise<T>,
    options?: TransactionOptions,
  ): Promise<T> {
    return transactions.run(() => super.transactional(work, options));
  }
}

@Injectable()
export class Shop {
  constructor(private readonly em: EntityManager) {}

  // The lock is outside: it is released after the commit.
  @DistributedLock((id: string) => key`stock:${id}`)
  @Transactional({ clear: true })
  async sell(id: string): Promise<void> {
    (await this.em.findOneOrFail(Stock, id, { refresh: true })).count--;
  }

  // The locks are inside. The module option `transactions` (below) delays
  // their release until after the commit.
  @Transactional({ clear: true })
  async sellAll(ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.sell(id);
  }
}

export const orm = await MikroORM.init(
  defineConfig({
    clientUrl: process.env['DATABASE_URL']!,
    entities: [Stock],
    entityManager: ScopedEntityManager,
    allowGlobalContext: true, // in an application, fork for each request
  }),
);

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: process.env['REDIS_URL']!,
      transactions,
    }),
  ],
  providers: [Shop, { provide: EntityManager, useValue: orm.em }],
})
export class AppModule {}
