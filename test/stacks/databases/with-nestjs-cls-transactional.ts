import { Injectable, Module } from '@nestjs/common';
import {
  ClsPluginTransactional,
  Transactional,
  TransactionHost,
} from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { ClsModule } from 'nestjs-cls';
import {
  DistributedLock,
  key,
  RedisLockModule,
  RedisLockService,
  TransactionScope,
} from 'nestjs-redis-lock';
import { fence } from 'nestjs-redis-lock/fence';

@Injectable()
export class Shop {
  constructor(
    private readonly host: TransactionHost<TransactionalAdapterTypeOrm>,
    private readonly locks: RedisLockService,
  ) {}

  // The lock is outside: it is released after the commit.
  @DistributedLock((id: string) => key`stock:${id}`)
  @Transactional()
  async sell(id: string): Promise<void> {
    await fence.guard(this.host, this.locks.currentOrThrow());
    const { tx } = this.host;
    const [{ count }] = await tx.query<[{ count: number }]>(
      'SELECT count FROM stock WHERE id = $1',
      [id],
    );
    await tx.query('UPDATE stock SET count = $2 WHERE id = $1', [
      id,
      count - 1,
    ]);
  }

  // The locks are inside. The module option `transactions` (below) delays
  // their release until after the commit.
  @Transactional()
  async sellAll(ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.sell(id);
  }
}

const transactions = new TransactionScope();
const adapter = new TransactionalAdapterTypeOrm({
  dataSourceToken: getDataSourceToken(),
});

@Module({
  imports: [
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: process.env['DATABASE_URL']!,
    }),
    ClsModule.forRoot({
      plugins: [
        new ClsPluginTransactional({
          imports: [TypeOrmModule],
          adapter: transactions.follow(adapter),
        }),
      ],
    }),
    RedisLockModule.forRoot({
      connection: process.env['REDIS_URL']!,
      transactions,
    }),
  ],
  providers: [Shop],
})
export class AppModule {}
