import { fence } from 'nestjs-redis-lock/fence';
import sqlite from 'node-sqlite3-wasm';
import { openPglite } from '../support/sql/pglite.mjs';
import { SeededRandom } from '../support/world/seeded-random.js';
import { blocksOf } from './guides.js';

const blocks = blocksOf('docs/guide/fencing.md');
const noted = (kind: string) =>
  new Map(
    blocks.flatMap(({ note, code }) => (note?.startsWith(kind) ? [[note.slice(kind.length), code] as const] : [])),
  );
/** The statements of docs/guide/fencing.md, by the `<!-- sql: name -->` before them. */
const statements = noted('sql: ');
/** The statements that remove old rows, by dialect. test/stacks/databases runs the one of MySQL. */
const prunings = noted('prune: ');

/** The result of a statement. */
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
  const db = await openPglite();
  return {
    run: async (sql, values = []) => {
      const { affectedRows = 0, rows } = await db.query<Record<string, unknown>>(sql, values);
      return { affected: affectedRows, rows };
    },
    close: () => db.close(),
  };
}

async function sqliteInMemory(): Promise<Engine> {
  const db = new sqlite.Database(':memory:');
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
  expect([...statements.keys()]).toEqual(['stock', 'update', 'upsert', 'read']);
});

describe.each([
  ['PostgreSQL', 'postgres', postgres],
  ['SQLite', 'sqlite', sqliteInMemory],
] as const)('the SQL of docs/guide/fencing.md on %s', (_name, dialect, open) => {
  let db: Engine;
  beforeAll(async () => {
    db = await open();
    await db.run(statements.get('stock')!);
    await db.run(fence.schema(dialect).trim());
  });
  afterAll(() => db.close());
  beforeEach(async () => {
    await db.run('DELETE FROM stock');
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

  it('removes the rows of fence.guard that were raised 30 days ago, 1,000 at once', async () => {
    const [old, recent] = ['2020-01-01 00:00:00', new Date().toISOString().slice(0, 19).replace('T', ' ')];
    const rows = Array.from({ length: 1_500 }, (_, i) => `('old ${i}', 1, '${old}')`).concat(
      `('recent', 1, '${recent}')`,
    );
    await db.run(`INSERT INTO redis_lock_fences (resource, token, raised_at) VALUES ${rows.join()}`);
    const prune = prunings.get(dialect)!;
    const removed = [(await db.run(prune)).affected, (await db.run(prune)).affected, (await db.run(prune)).affected];
    expect(removed).toEqual([1_000, 500, 0]);
    expect((await db.run('SELECT resource FROM redis_lock_fences')).rows).toEqual([{ resource: 'recent' }]);
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
