import { Injectable, Module } from '@nestjs/common';
import { InjectDataSource, TypeOrmModule } from '@nestjs/typeorm';
import {
  DistributedLock,
  key,
  RedisLockModule,
  typeormTransactional,
} from 'nestjs-redis-lock';
import { DataSource, type DataSourceOptions } from 'typeorm';
import {
  addTransactionalDataSource,
  getDataSourceByName,
  runOnTransactionComplete,
  Transactional,
} from 'typeorm-transactional';

@Injectable()
export class Shop {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
  ) {}

  // The lock is outside: it is released after the commit.
  @DistributedLock((id: string) => key`stock:${id}`)
  @Transactional()
  async sell(id: string): Promise<void> {
    const [{ count }] = await this.dataSource.query<[{ count: number }]>(
      'SELECT count FROM stock WHERE id = $1',
      [id],
    );
    await this.dataSource.query(
      'UPDATE stock SET count = $2 WHERE id = $1',
      [id, count - 1],
    );
  }

  // The locks are inside. The module option `transactions` (below) delays
  // their release until after the commit.
  @Transactional()
  async sellAll(ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.sell(id);
  }
}

@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      useFactory: () => ({
        type: 'postgres',
        url: process.env['DATABASE_URL']!,
      }),
      dataSourceFactory: async (options) =>
        addTransactionalDataSource(
          new DataSource(options as DataSourceOptions),
        ),
    }),
    RedisLockModule.forRoot({
      connection: process.env['REDIS_URL']!,
      transactions: typeormTransactional({
        getDataSourceByName,
        runOnTransactionComplete,
      }),
    }),
  ],
  providers: [Shop],
})
export class AppModule {}
