import { Inject, Injectable } from '@nestjs/common';
import { DistributedLock, RedisLockService, TransactionScope } from 'nestjs-redis-lock';
import sqlite from 'node-sqlite3-wasm';
import { inMemory, useApps } from '../../../nest/nest-apps.js';

/** Transactions of real libraries on a PostgreSQL server are in test/stacks/databases. This is the quick form. */
describe('a lock and a transaction of a database', () => {
  const start = useApps();
  const scope = new TransactionScope();
  const db = new sqlite.Database(':memory:');
  beforeAll(() => db.exec('CREATE TABLE stock (id TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0))'));
  beforeEach(() => db.exec(`DELETE FROM stock; INSERT INTO stock VALUES ('a', 1)`));
  afterAll(() => db.close());

  @Injectable()
  class Shop {
    @Inject() readonly locks!: RedisLockService;

    /** `true` if the lock was still held right before the COMMIT or ROLLBACK. */
    readonly heldAtTheEnd: boolean[] = [];

    @DistributedLock('stock')
    async sellInside(): Promise<void> {
      db.exec(`UPDATE stock SET count = count - 1 WHERE id = 'a'`);
    }

    @DistributedLock('stock')
    async sellAround(): Promise<void> {
      await this.transaction(async () => db.exec(`UPDATE stock SET count = count - 1 WHERE id = 'a'`));
    }

    async transaction(work: () => Promise<void>): Promise<void> {
      const end = async (statement: 'COMMIT' | 'ROLLBACK'): Promise<void> => {
        this.heldAtTheEnd.push(!(await this.isFree()));
        db.exec(statement);
      };
      db.exec('BEGIN');
      try {
        await work();
      } catch (error) {
        await end('ROLLBACK');
        throw error;
      }
      await end('COMMIT');
    }

    async isFree(): Promise<boolean> {
      return (await this.locks.inspect('stock')).mode === null;
    }
  }

  async function open(options: Parameters<typeof inMemory>[0] = {}): Promise<Shop> {
    const { app } = await start({ imports: [inMemory(options)], providers: [Shop] });
    return app.get(Shop);
  }

  const left = (): unknown => db.get('SELECT count FROM stock')!['count'];

  it('the lock inside is free before the COMMIT', async () => {
    const shop = await open();
    await shop.transaction(() => shop.sellInside());
    expect([shop.heldAtTheEnd, left()]).toEqual([[false], 0]);
  });

  it('the lock outside is held until the COMMIT, and free afterwards', async () => {
    const shop = await open();
    await shop.sellAround();
    expect([shop.heldAtTheEnd, left(), await shop.isFree()]).toEqual([[true], 0, true]);
  });

  it('the lock inside is held until the COMMIT if its release waits for it', async () => {
    const shop = await open({ transactions: scope });
    await scope.run(() => shop.transaction(() => shop.sellInside()));
    expect([shop.heldAtTheEnd, left(), await shop.isFree()]).toEqual([[true], 0, true]);
  });

  it('and until the ROLLBACK, even if a constraint of the database causes it', async () => {
    const shop = await open({ transactions: scope });
    const sellTwo = scope.run(() =>
      shop.transaction(async () => {
        await shop.sellInside();
        await shop.sellInside();
      }),
    );
    await expect(sellTwo).rejects.toThrow(/CHECK constraint failed/);
    expect([shop.heldAtTheEnd, left(), await shop.isFree()]).toEqual([[true], 1, true]);
  });
});
