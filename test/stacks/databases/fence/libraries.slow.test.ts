import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runUnbundled } from '../../../support/process/run-typescript.js';
import { type SqlServer, startMariadb, startPostgres } from '../../../support/sql/sql-server.js';

/** The name of each library in messages, and its transactions that are not open. */
const LIBRARIES: Readonly<Record<string, [name: string, ...outside: string[]]>> = {
  pg: ['pg', 'pool', 'a client without BEGIN'],
  'postgres.js': ['postgres.js', 'sql'],
  PGlite: ['PGlite', 'db'],
  'TypeORM on PostgreSQL': ['TypeORM', 'dataSource', 'manager', 'a query runner'],
  'TypeORM on MariaDB': ['TypeORM', 'dataSource', 'manager', 'a query runner'],
  'TypeORM on SQLite (sql.js)': ['TypeORM', 'dataSource', 'manager', 'a query runner'],
  'TypeORM on SQLite (better-sqlite3)': ['TypeORM', 'dataSource', 'manager', 'a query runner'],
  '@nestjs-cls/transactional': ['@nestjs-cls/transactional', 'the host without a transaction'],
  'Prisma on PostgreSQL': ['Prisma', 'client'],
  'Prisma on MariaDB': ['Prisma', 'client'],
  'Prisma on SQLite': ['Prisma', 'client'],
  'MikroORM on PostgreSQL': ['MikroORM', 'em'],
  'MikroORM on MariaDB': ['MikroORM', 'em'],
  'MikroORM on SQLite (libsql)': ['MikroORM', 'em'],
  'Drizzle on pg': ['Drizzle', 'db'],
  'Drizzle on postgres.js': ['Drizzle', 'db'],
  'Drizzle on MariaDB': ['Drizzle', 'db'],
  'Drizzle on SQLite': ['Drizzle', 'db'],
  'Knex on PostgreSQL': ['Knex', 'knex', 'a transaction that has ended'],
  'Knex on MariaDB': ['Knex', 'knex', 'a transaction that has ended'],
  'Knex on SQLite (better-sqlite3)': ['Knex', 'knex', 'a transaction that has ended'],
  'Knex on SQLite (sqlite3)': ['Knex', 'knex', 'a transaction that has ended'],
  'Sequelize on PostgreSQL': ['Sequelize', 'sequelize', 'a transaction that has ended'],
  'Sequelize on MariaDB': ['Sequelize', 'sequelize', 'a transaction that has ended'],
  'Sequelize on SQLite (sqlite3)': ['Sequelize', 'sequelize', 'a transaction that has ended'],
  mysql2: ['mysql2', 'pool', 'a connection without beginTransaction()'],
  'mysql2 with callbacks': ['mysql2', 'pool', 'a connection without beginTransaction()'],
};
const NAMES = 11;

describe('fence.guard in a transaction of', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fences-'));
  const servers: SqlServer[] = [];
  let results: Record<string, Record<string, unknown>>;
  beforeAll(async () => {
    servers.push(await startPostgres(), await startMariadb());
    const args = [...servers.map(({ url }) => url), folder];
    const { code, stdout, stderr } = await runUnbundled(new URL('libraries-main.ts', import.meta.url), args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    results = JSON.parse(stdout) as typeof results;
  }, 240_000);
  afterAll(async () => {
    for (const server of servers) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }, 30_000);

  it('each library of this list, and no other', () => {
    expect(Object.keys(results)).toEqual(Object.keys(LIBRARIES));
  });

  describe.each(Object.entries(LIBRARIES))('%s', (library, [name, ...outside]) => {
    const result = (what: string): unknown =>
      results[library]!['failed'] ? results[library] : results[library]![what];

    it('commits with an equal or larger token, and leaves nothing of a transaction with a stale one', () => {
      expect(result('outcomes')).toEqual([
        'committed',
        'stale: 1 after 2',
        'committed',
        'committed',
        'stale: 2 after 3',
      ]);
      expect(result('sold')).toEqual([2, 2, 3]);
    });

    it('writes nothing on PostgreSQL after a stale guard, even if the application swallows the error', () => {
      expect(result('isWritten')).toBe(/MariaDB|SQLite|mysql2/.test(library));
    });

    it('takes no name for another, or for SQL', () => {
      expect(result('names')).toEqual(Array(NAMES).fill('committed'));
      expect(result('stale')).toEqual(Array.from({ length: NAMES }, (_, i) => `stale: ${9 + i} after ${10 + i}`));
    });

    it('refuses what is no open transaction', () => {
      const { 'a synchronous transaction': synchronous, ...others } = result('refusals') as Record<string, string>;
      const said = Object.entries(others).map(([what, text]) => [what, text.split(/ is open here,| has ended,/)[0]]);
      const why = (what: string) => `here: ${what.endsWith('has ended') ? 'this' : 'no'} transaction of ${name}`;
      expect(said).toEqual(outside.map((what) => [what, `refused: fence.guard cannot be used ${why(what)}`]));
      if (library === 'Drizzle on SQLite')
        expect(synchronous).toMatch(/^refused: .* ends before the guard could wait for the database/);
    });

    it('says what creates the missing table', () => {
      expect(result('missing')).toMatch(
        /^refused: The table redis_lock_fences .* does not exist.*\nCREATE TABLE IF NOT EXISTS redis_lock_fences/,
      );
    });

    if (/SQLite|PGlite/.test(library)) return; // one writer at a time
    it('waits for the transaction of a newer holder, and is then refused', () => {
      expect(result('meeting')).toBe('stale: 4 after 5');
    });
  });
});
