import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import sqlite from 'node-sqlite3-wasm';
import { SeededRandom } from '../support/world/seeded-random.js';
import { blocksOf } from './guides.js';

/** The statements of docs/guide/fencing.md, by the `<!-- sql: name -->` before them. */
const statements = new Map(
  blocksOf('docs/guide/fencing.md').flatMap(({ note, code }) =>
    note?.startsWith('sql: ') ? [[note.replace('sql: ', ''), code] as const] : [],
  ),
);

/** What a statement gave. */
interface Outcome {
  readonly affected: number;
  readonly rows: readonly Record<string, unknown>[];
}

interface Engine {
  run(sql: string, values?: (string | number)[]): Promise<Outcome>;
  close(): Promise<void>;
}

/** Real tokens are beyond 2^32: a column that is too narrow would show. */
const TOKEN = 2 ** 52;

async function postgres(): Promise<Engine> {
  const db = await PGlite.create();
  return {
    run: async (sql, values = []) => {
      const { affectedRows = 0, rows } = await db.query<Record<string, unknown>>(sql, values);
      return { affected: affectedRows, rows };
    },
    close: () => db.close(),
  };
}

async function sqliteFile(path = ':memory:'): Promise<Engine> {
  const db = new sqlite.Database(path);
  return {
    run: async (sql, values = []) => {
      const statement = sql.replace(/\$(\d)/g, '?$1');
      if (/RETURNING|^SELECT/.test(statement)) {
        const rows = db.all(statement, values) as Record<string, unknown>[];
        return { affected: rows.length, rows };
      }
      return { affected: db.run(statement, values).changes, rows: [] };
    },
    close: async () => db.close(),
  };
}

it('docs/guide/fencing.md has the statements that are run here, and no others', () => {
  expect([...statements.keys()]).toEqual(['stock', 'update', 'upsert', 'read', 'fences', 'fence']);
});

describe.each([
  ['PostgreSQL', postgres],
  ['SQLite', sqliteFile],
])('the SQL of docs/guide/fencing.md on %s', (_name, open) => {
  let db: Engine;
  beforeAll(async () => {
    db = await open();
    for (const table of ['stock', 'fences']) await db.run(statements.get(table)!);
    await db.run('CREATE TABLE closings (token BIGINT NOT NULL)');
  }, 60_000);
  afterAll(() => db.close());
  beforeEach(async () => {
    for (const table of ['stock', 'fences', 'closings']) await db.run(`DELETE FROM ${table}`);
  });

  const run = (name: string, ...values: (string | number)[]) => db.run(statements.get(name)!, values);
  const stored = async (): Promise<unknown[]> => {
    const { rows } = await db.run('SELECT count, fencing_token FROM stock');
    return rows.map(({ count, fencing_token: token }) => [Number(count), Number(token) - TOKEN]);
  };

  it('a holder with token 2 writes, and one with token 1 that comes after it does not', async () => {
    await db.run("INSERT INTO stock (id, count) VALUES ('a', 9)");
    expect((await run('update', 'a', 5, TOKEN + 2)).affected).toBe(1);
    expect((await run('update', 'a', 8, TOKEN + 1)).affected).toBe(0);
    expect(await stored()).toEqual([[5, 2]]);
  });

  it('one lease writes again, also the same values, and a later one goes on', async () => {
    await db.run("INSERT INTO stock (id, count) VALUES ('a', 9)");
    for (const count of [5, 5, 4]) expect((await run('update', 'a', count, TOKEN + 2)).affected).toBe(1);
    expect((await run('update', 'a', 3, TOKEN + 3)).affected).toBe(1);
    expect(await stored()).toEqual([[3, 3]]);
  });

  it('a row that is not there yet is inserted, and after that it is an update', async () => {
    expect((await run('upsert', 'a', 5, TOKEN + 2)).affected).toBe(1);
    expect((await run('upsert', 'a', 8, TOKEN + 1)).affected).toBe(0);
    expect((await run('upsert', 'a', 4, TOKEN + 2)).affected).toBe(1);
    expect(await stored()).toEqual([[4, 2]]);
  });

  it('who reads with its token cannot be overtaken by an older write', async () => {
    await run('upsert', 'a', 5, TOKEN);
    expect(await run('read', 'a', TOKEN + 2)).toMatchObject({ rows: [{ count: 5 }] });
    expect((await run('update', 'a', 4, TOKEN + 1)).affected).toBe(0);
    expect((await run('update', 'a', 4, TOKEN + 2)).affected).toBe(1);
    expect((await run('read', 'a', TOKEN + 1)).rows).toEqual([]);
  });

  it('a transaction whose fence refuses it leaves nothing, one that is let in leaves all', async () => {
    const closeBooks = async (token: number): Promise<boolean> => {
      await db.run('BEGIN');
      const isLetIn = (await run('fence', 'books', TOKEN + token)).affected === 1;
      if (isLetIn) await db.run('INSERT INTO closings (token) VALUES ($1)', [TOKEN + token]);
      await db.run(isLetIn ? 'COMMIT' : 'ROLLBACK');
      return isLetIn;
    };
    const tokens = [2, 1, 2, 3, 2];
    const outcomes: boolean[] = [];
    for (const token of tokens) outcomes.push(await closeBooks(token));
    expect(outcomes).toEqual([true, false, true, true, false]);
    const { rows } = await db.run('SELECT token FROM closings');
    expect(rows.map(({ token }) => Number(token) - TOKEN)).toEqual([2, 2, 3]);
  });

  it('writers in any order: those are let in whose token is not smaller than all before', async () => {
    const random = new SeededRandom(7);
    let largest = 0;
    for (let i = 0; i < 200; i++) {
      const token = 1 + Math.floor(random.fraction() * 40) + Math.floor(i / 5);
      const name = random.fraction() < 0.5 || largest === 0 ? 'upsert' : 'update';
      expect([token, (await run(name, 'a', i, TOKEN + token)).affected]).toEqual([token, token >= largest ? 1 : 0]);
      if (token >= largest) largest = token;
      expect((await stored())[0]).toEqual([expect.any(Number), largest]);
    }
  });
});

describe('two connections to one SQLite file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fencing-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('a transaction that has come with its token keeps the other out until it is over', async () => {
    const [first, second] = [await sqliteFile(join(folder, 'db')), await sqliteFile(join(folder, 'db'))];
    const fence = (db: Engine, token: number) => db.run(statements.get('fence')!, ['books', token]);
    await first.run(statements.get('fences')!);
    await first.run('BEGIN IMMEDIATE');
    expect((await fence(first, 2)).affected).toBe(1);
    await expect(second.run('BEGIN IMMEDIATE')).rejects.toThrow(/locked/);
    await first.run('COMMIT');
    await second.run('BEGIN IMMEDIATE');
    expect((await fence(second, 1)).affected).toBe(0);
    await second.run('ROLLBACK');
    for (const db of [first, second]) await db.close();
  });
});
