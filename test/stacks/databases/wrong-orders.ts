// The order that loses updates, by each library. In a decorator it is refused, so the lock is taken in the method.
import { EntityManager, Transactional as MikroTransactional } from '@mikro-orm/postgresql';
import { Injectable } from '@nestjs/common';
import { Transactional as ClsTransactional, TransactionHost } from '@nestjs-cls/transactional';
import type { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { DistributedLock, RedisLockService } from 'nestjs-redis-lock';
import { DataSource } from 'typeorm';
import { Transactional as TypeormTransactional } from 'typeorm-transactional';
import { PrismaClient } from './generated/client.js';

const KEY = (id: string) => `stock:${id}`;
const READ = 'SELECT count FROM stock WHERE id = $1';
const WRITE = 'UPDATE stock SET count = $2 WHERE id = $1';
/** The fence is the first statement, and reads. No row: the token is stale. */
const FENCED_READ = `UPDATE stock SET fencing_token = $2 WHERE id = $1 AND fencing_token <= $2 RETURNING count`;

type Rows = [{ count: number }];

@Injectable()
export class TypeormWrong {
  constructor(
    private readonly dataSource: DataSource,
    private readonly locks: RedisLockService,
  ) {}

  @TypeormTransactional()
  async sell(id: string): Promise<void> {
    await using _lease = await this.locks.acquire(KEY(id));
    const [{ count }] = await this.dataSource.query<Rows>(READ, [id]);
    await this.dataSource.query(WRITE, [id, count - 1]);
  }

  @TypeormTransactional()
  async sellFenced(id: string): Promise<void> {
    await using lease = await this.locks.acquire(KEY(id));
    await this.#sellUnder(id, lease.fencingToken);
  }

  @TypeormTransactional()
  async sellWith(id: string, token: number): Promise<void> {
    await this.#sellUnder(id, token);
  }

  async #sellUnder(id: string, token: number): Promise<void> {
    const [[row]] = await this.dataSource.query<[{ count: number }[], number]>(FENCED_READ, [id, token]);
    if (!row) throw new Error('stale');
    await this.dataSource.query(WRITE, [id, row.count - 1]);
  }
}

@Injectable()
export class ClsWrong {
  constructor(
    private readonly host: TransactionHost<TransactionalAdapterTypeOrm>,
    private readonly locks: RedisLockService,
  ) {}

  @ClsTransactional()
  async sell(id: string): Promise<void> {
    await using _lease = await this.locks.acquire(KEY(id));
    const [{ count }] = await this.host.tx.query<Rows>(READ, [id]);
    await this.host.tx.query(WRITE, [id, count - 1]);
  }
}

@Injectable()
export class MikroWrong {
  constructor(
    readonly em: EntityManager,
    private readonly locks: RedisLockService,
  ) {}

  @MikroTransactional({ clear: true })
  async sell(id: string): Promise<void> {
    await using _lease = await this.locks.acquire(KEY(id));
    const [row] = await this.em.execute<Rows>('SELECT count FROM stock WHERE id = ?', [id]);
    await this.em.execute('UPDATE stock SET count = ? WHERE id = ?', [row.count - 1, id]);
  }
}

@Injectable()
export class PrismaWrong {
  constructor(
    private readonly prisma: PrismaClient,
    private readonly locks: RedisLockService,
  ) {}

  async sell(id: string): Promise<void> {
    await this.prisma.$transaction((tx) =>
      this.locks.using(KEY(id), async () => {
        const { count } = await tx.stock.findUniqueOrThrow({ where: { id } });
        await tx.stock.update({ where: { id }, data: { count: count - 1 } });
      }),
    );
  }
}

/** Refused, when the application starts or by the first call. */
@Injectable()
export class TypeormRefused {
  @TypeormTransactional()
  @DistributedLock(KEY)
  async sell(_id: string): Promise<void> {}
}

@Injectable()
export class MikroRefused {
  @MikroTransactional()
  @DistributedLock(KEY)
  async sell(_id: string): Promise<void> {}
}

@Injectable()
export class ClsRefused {
  ran = 0;

  @ClsTransactional()
  @DistributedLock(KEY)
  async sell(_id: string): Promise<void> {
    this.ran++;
  }
}

/** A locked method that other services call inside of their transactions. */
@Injectable()
export class Locked {
  @DistributedLock(KEY)
  async byTypeorm(_id: string): Promise<void> {}

  @DistributedLock(KEY)
  async byPrisma(_id: string): Promise<void> {}
}
