import type { PGlite } from '@electric-sql/pglite';
import { jest } from '@jest/globals';
import { LeaseLostError, LockBusyError } from 'nestjs-redis-lock';
import { rejection } from '../../../test/support/expect/eventually.js';
import { openPglite } from '../../../test/support/sql/pglite.mjs';
import { MIGRATION } from '../../demo/postgres.mjs';
import { LedgerDatabase } from '../../src/ledger/ledger-database.js';
import { LedgerRegister } from '../../src/ledger/ledger-register.js';
import { LedgerService } from '../../src/ledger/ledger.service.js';
import { StockService } from '../../src/stock/stock.service.js';
import { StocktakingService } from '../../src/stock/stocktaking.service.js';
import { useShop } from './use-shop.js';

const shop = useShop();

describe('stock', () => {
  const stock = () => shop.get(StockService);

  it('is not sold twice', async () => {
    await stock().deliver('jam', 1);
    const orders = await Promise.allSettled(['alice', 'bob'].map((buyer) => stock().order('jam', buyer)));
    expect(orders.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await stock().orders('jam')).toHaveLength(1);
  });
});

describe('stocktaking', () => {
  const count = () => shop.get(StocktakingService).count('tea');

  it('turns a second request away while another instance counts', async () => {
    await using _other = await shop.locks().holdElsewhere('count:tea');
    await expect(count()).rejects.toThrow(LockBusyError);
  });

  it('stops when its lease is lost', async () => {
    const ended = rejection(count());
    await shop.locks().idle();
    await shop.locks().lose('count:tea');
    expect(await ended).toBeInstanceOf(LeaseLostError);
  });
});

describe('the ledger', () => {
  let db: PGlite;
  beforeAll(async () => {
    db = await openPglite();
    await db.exec(MIGRATION);
    const transaction = <T>(work: (tx: never) => Promise<T>) => db.transaction((tx) => work(tx as never));
    jest.spyOn(shop.get(LedgerDatabase), 'transaction').mockImplementation(transaction);
  }, 60_000);
  afterAll(() => db.close());

  it('is refused a closing that comes after one with a later token', async () => {
    const locks = shop.locks('ledger');
    const closing = shop.get(LedgerService).close();
    await locks.idle();
    await locks.lose('books');
    await using later = await locks.holdElsewhere('books');
    await shop.get(LedgerRegister).write({ token: later.fencingToken, closedBy: 'shop-2' });
    await expect(closing).rejects.toThrow(/its fencing token \d+ is stale/);
    expect(await shop.get(LedgerRegister).closings()).toEqual([{ token: later.fencingToken, closedBy: 'shop-2' }]);
  });

  it('says what it needs', async () => {
    jest.restoreAllMocks();
    await expect(shop.get(LedgerRegister).closings()).rejects.toThrow('set DATABASE_URL');
  });
});
