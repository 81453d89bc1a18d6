import { Injectable, Module } from '@nestjs/common';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  DistributedLock,
  key,
  RedisLockModule,
  RedisLockService,
  TransactionScope,
} from 'nestjs-redis-lock';
import { type Prisma, PrismaClient } from './generated/client.js';

const transactions = new TransactionScope();

@Injectable()
export class Shop {
  constructor(
    private readonly prisma: PrismaClient,
    private readonly locks: RedisLockService,
  ) {}

  // The lock is outside: it is released after the commit.
  @DistributedLock((id: string) => key`stock:${id}`)
  async sell(id: string): Promise<void> {
    await this.prisma.$transaction((tx) => takeOne(tx, id));
  }

  // The locks are inside. run() delays the release until after the commit.
  async sellAll(ids: readonly string[]): Promise<void> {
    await transactions.run(() =>
      this.prisma.$transaction(async (tx) => {
        for (const id of ids)
          await this.locks.using(key`stock:${id}`, () => takeOne(tx, id));
      }),
    );
  }
}

async function takeOne(
  tx: Prisma.TransactionClient,
  id: string,
): Promise<void> {
  const { count } = await tx.stock.findUniqueOrThrow({ where: { id } });
  await tx.stock.update({ where: { id }, data: { count: count - 1 } });
}

@Module({
  imports: [
    RedisLockModule.forRoot({
      connection: process.env['REDIS_URL']!,
      transactions,
    }),
  ],
  providers: [
    Shop,
    {
      provide: PrismaClient,
      useFactory: () =>
        new PrismaClient({
          adapter: new PrismaPg(process.env['DATABASE_URL']!),
        }),
    },
  ],
})
export class AppModule {}
