// The program of libraries.slow.test.ts: most of these packages are CommonJS, and cannot be loaded by Jest beside Nest
// 12.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidLockOptionsError } from 'nestjs-redis-lock';
import { fence, StaleFencingTokenError } from 'nestjs-redis-lock/fence';
import { LIBRARIES, type Library } from './libraries.js';

const [postgres, mysql, sqlite] = process.argv.slice(2) as [string, string, string];
/** Real tokens are beyond 2^32: a column or a parameter that is too narrow would show. */
const TOKEN = 2 ** 52;
const WAITS_MS = 20_000;
/** InnoDB renews what it says of its transactions when it was not asked for 0.1 s. */
const LOOK_MS = 120;
const WAITING = {
  postgres: `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
  mysql: `SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
};

/** Names that a database may take for one another, or for SQL. */
const NAMES = [
  'a',
  'A',
  'a ',
  '\u00e4',
  '\u00e9',
  'e\u0301',
  `'; DROP TABLE sales; --`,
  '\\',
  `"?$1:x`,
  '🔒',
  'x'.repeat(512),
];

const say = (error: unknown): string => {
  if (error instanceof StaleFencingTokenError)
    return `stale: ${error.token - TOKEN} after ${error.newestToken - TOKEN}`;
  if (error instanceof InvalidLockOptionsError) return `refused: ${error.message}`;
  return `failed: ${String(error)}`;
};
const outcomeOf = (promise: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(promise).then(() => 'committed', say);

async function tell(library: Library): Promise<Record<string, unknown>> {
  const { database, transaction, run, outside } = library;
  const hold = (resource: string, token: number) =>
    transaction(async (tx, write) => {
      await write(`INSERT INTO sales (token) VALUES (${TOKEN + token + 1000})`);
      await fence.guard(tx, { resource, token: TOKEN + token });
      await write(`INSERT INTO sales (token) VALUES (${TOKEN + token})`);
    });
  const sales = async () => {
    const rows = (await run('SELECT token FROM sales ORDER BY token')) as { token: unknown }[];
    return rows.map(({ token }) => Number(token) - TOKEN).filter((token) => token < 1000);
  };

  for (const table of ['sales', 'redis_lock_fences']) await run(`DROP TABLE IF EXISTS ${table}`);
  await run('CREATE TABLE sales (token BIGINT NOT NULL)');
  const missing = await outcomeOf(hold('a', 1));
  await run(fence.schema(database));
  await run(fence.schema(database)); // a second time does nothing

  const outcomes: string[] = [];
  for (const token of [2, 1, 2, 3, 2]) outcomes.push(await outcomeOf(hold('a', token)));
  const sold = await sales();

  // The caller ignores the error.
  const swallowed = transaction(async (tx, write) => {
    await write(`INSERT INTO sales (token) VALUES (${TOKEN + 500})`);
    await fence.guard(tx, { resource: 'a', token: TOKEN + 1 }).catch(() => {});
  });
  await outcomeOf(swallowed);
  const isWritten = (await sales()).includes(500);

  const names: string[] = [];
  for (const [index, name] of NAMES.entries()) names.push(await outcomeOf(hold(name, 10 + index)));
  const stale: string[] = [];
  for (const [index, name] of NAMES.entries()) stale.push(await outcomeOf(hold(name, 9 + index)));

  const refusals: Record<string, string> = {};
  for (const [name, tx] of Object.entries(outside)) {
    refusals[name] = await outcomeOf(fence.guard(tx, { resource: 'outside', token: 1 }));
  }
  return {
    missing,
    outcomes,
    sold,
    isWritten,
    names,
    stale,
    refusals,
    meeting: database === 'sqlite' || library === pglite ? undefined : await meet(library, hold),
  };
}

/** An older holder comes while a newer one is in its transaction, which then commits. */
async function meet(
  { database, transaction, run }: Library,
  hold: (name: string, token: number) => PromiseLike<unknown>,
) {
  const waiting = WAITING[database as 'postgres' | 'mysql'];
  let commit!: () => void;
  const commits = new Promise<void>((resolve) => (commit = resolve));
  let newer!: PromiseLike<unknown>;
  await new Promise<void>((entered, failed) => {
    newer = transaction(async (tx) => {
      await fence.guard(tx, { resource: 'met', token: TOKEN + 5 });
      entered();
      await commits;
    });
    newer.then(undefined, failed);
  });
  let hasEnded = false;
  const late = outcomeOf(hold('met', 4)).finally(() => (hasEnded = true));
  for (const deadline = Date.now() + WAITS_MS; ((await run(waiting)) as unknown[]).length === 0; await sleep(LOOK_MS)) {
    if (hasEnded || Date.now() > deadline) throw new Error('It does not wait for the transaction of the other one');
  }
  commit();
  await newer;
  return late;
}

let pglite: Library | undefined;
const results: Record<string, unknown> = {};
for (const [name, open] of Object.entries(LIBRARIES)) {
  const library = await open({ postgres, mysql, sqlite: `${sqlite}/${name}.db` });
  if (name === 'PGlite') pglite = library;
  results[name] = await tell(library).catch((error: unknown) => ({ failed: String((error as Error).stack) }));
  await library.close();
}
console.log(JSON.stringify(results));
