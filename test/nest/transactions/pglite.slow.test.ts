import { Inject, Injectable } from '@nestjs/common';
import { PGlite, type Transaction } from '@electric-sql/pglite';
import { DistributedLock, RedisLockService, TransactionScope } from 'nestjs-redis-lock';
import { inMemory, useApps } from '../nest-apps.js';

/** The transactions of real libraries on a PostgreSQL server are in test/stacks/databases. This is the quick form. */
describe('a lock and a transaction of PostgreSQL', () => {
  const start = useApps();
  const scope = new TransactionScope();
  let db: PGlite;
  beforeAll(async () => {
    db = await PGlite.create();
    await db.exec('CREATE TABLE stock (id TEXT PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 0))');
  }, 30_000);
  beforeEach(() => db.exec(`DELETE FROM stock; INSERT INTO stock VALUES ('a', 1)`));
  afterAll(() => db.close());

  @Injectable()
  class Shop {
    @Inject() readonly locks!: RedisLockService;

    /** Whether the lock was still held right before the COMMIT or ROLLBACK. */
    readonly heldAtTheEnd: boolean[] = [];

    @DistributedLock('stock')
    async sellInside(tx: Transaction): Promise<void> {
      await tx.query(`UPDATE stock SET count = count - 1 WHERE id = 'a'`);
    }

    @DistributedLock('stock')
    async sellAround(): Promise<void> {
      await this.transaction(async (tx) => void (await tx.query(`UPDATE stock SET count = count - 1 WHERE id = 'a'`)));
    }

    transaction(work: (tx: Transaction) => Promise<void>): Promise<void> {
      return db.transaction(async (tx) => {
        try {
          await work(tx);
        } finally {
          this.heldAtTheEnd.push(!(await this.isFree()));
        }
      });
    }

    async isFree(): Promise<boolean> {
      return (await this.locks.inspect('stock')).mode === null;
    }
  }

  async function open(options: Parameters<typeof inMemory>[0] = {}): Promise<Shop> {
    const { app } = await start({ imports: [inMemory(options)], providers: [Shop] });
    return app.get(Shop);
  }

  const left = async () => (await db.query<{ count: number }>('SELECT count FROM stock')).rows[0]!.count;

  it('the lock inside is free before the COMMIT', async () => {
    const shop = await open();
    await shop.transaction((tx) => shop.sellInside(tx));
    expect([shop.heldAtTheEnd, await left()]).toEqual([[false], 0]);
  });

  it('the lock outside is held until the COMMIT, and free afterwards', async () => {
    const shop = await open();
    await shop.sellAround();
    expect([shop.heldAtTheEnd, await left(), await shop.isFree()]).toEqual([[true], 0, true]);
  });

  it('the lock inside is held until the COMMIT where its release waits for it', async () => {
    const shop = await open({ transactions: scope });
    await scope.run(() => shop.transaction((tx) => shop.sellInside(tx)));
    expect([shop.heldAtTheEnd, await left(), await shop.isFree()]).toEqual([[true], 0, true]);
  });

  it('and until the ROLLBACK, also where a constraint of the database asks for it', async () => {
    const shop = await open({ transactions: scope });
    const sellTwo = scope.run(() =>
      shop.transaction(async (tx) => {
        await shop.sellInside(tx);
        await shop.sellInside(tx);
      }),
    );
    await expect(sellTwo).rejects.toThrow(/violates check constraint/);
    expect([shop.heldAtTheEnd, await left(), await shop.isFree()]).toEqual([[true], 1, true]);
  });
});
