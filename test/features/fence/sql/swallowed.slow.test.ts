import sqlite from 'node-sqlite3-wasm';
import { fence, StaleFencingTokenError } from '../../../../lib/fence.js';
import { openPglite } from '../../../support/sql/pglite.mjs';

const STALE = { resource: 'stock:7', token: 7 };
const NEWER = { resource: 'stock:7', token: 9 };

// MariaDB and each library: test/stacks/databases/fence.
describe('a transaction that continues after a stale guard', () => {
  it('cannot commit on PostgreSQL', async () => {
    const db = await openPglite();
    await db.exec(`${fence.schema('postgres')} CREATE TABLE sales (token BIGINT)`);
    await db.transaction((tx) => fence.guard(tx, NEWER));
    let swallowed: unknown;
    const committed = db.transaction(async (tx) => {
      await tx.query('INSERT INTO sales VALUES (7)');
      await fence.guard(tx, STALE).catch((error: unknown) => (swallowed = error));
    });
    // PGlite sees that the reply to COMMIT is ROLLBACK. Other drivers resolve.
    await expect(committed).rejects.toThrow('rolled back instead of committed');
    expect(swallowed).toBeInstanceOf(StaleFencingTokenError);
    expect((await db.query('SELECT * FROM sales')).rows).toEqual([]);
    await db.transaction((tx) => fence.guard(tx, NEWER));
    await db.close();
  });

  it('commits on SQLite, which ends no transaction for a statement: the application has to roll back', async () => {
    const db = new sqlite.Database(':memory:');
    db.exec(`${fence.schema('sqlite')} CREATE TABLE sales (token BIGINT)`);
    // As Knex shows a transaction.
    const raw = async (text: string, values: readonly (string | number)[]) => db.all(text, [...values]);
    const tx = { raw, isTransaction: true, isCompleted: () => false, client: { dialect: 'sqlite3' } };
    await fence.guard(tx, NEWER);
    db.exec('BEGIN; INSERT INTO sales VALUES (7)');
    await expect(fence.guard(tx, STALE)).rejects.toBeInstanceOf(StaleFencingTokenError);
    db.exec('COMMIT');
    expect(db.all('SELECT * FROM sales')).toHaveLength(1);
    db.close();
  });
});
