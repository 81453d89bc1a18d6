// A process that runs the snippet of one driver against a server, and prints what came of it as JSON.
// Arguments: the driver, the URL of the server, the folder with the compiled snippets.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { fence } from 'nestjs-redis-lock/fence';
import { CLAIMS } from './claims.mjs';
import { CONNECTIONS, CONTROLLERS } from './connections.mjs';

const [driver, url, folder] = process.argv.slice(2);
/** Real tokens are beyond 2^32: a column or a parameter that is too narrow would show. */
const TOKEN = 2 ** 52;
const WAITS_MS = 20_000;

const snippet = await import(pathToFileURL(`${folder}/${driver}.js`).href);
const { client, close } = await CONNECTIONS[driver](url, { ...snippet, folder });
const controller = await CONTROLLERS[driver === 'mysql2' ? 'mysql2' : 'pg'](url);

for (const table of [...JSON.parse(process.env.TABLES), fence.schema(driver === 'mysql2' ? 'mysql' : 'postgres')]) {
  const [, name] = /TABLE (?:IF NOT EXISTS )?(\w+)/.exec(table);
  await controller.run(`DROP TABLE IF EXISTS ${name}`);
  await controller.run(table);
}

const stored = async () => {
  const rows = await controller.run('SELECT count, fencing_token FROM stock');
  return rows.map((row) => [row.count, Number(row.fencing_token) - TOKEN]);
};

/** A row as a holder with this token left it. */
async function reset(count, token) {
  for (const table of ['stock', 'redis_lock_fences', 'closings']) await controller.run(`DELETE FROM ${table}`);
  await controller.run('INSERT INTO stock (id, count, fencing_token) VALUES (?, ?, ?)', ['a', count, TOKEN + token]);
}

const save = (id, count, token) => snippet.save(client, id, count, TOKEN + token);
const read = async (token) => (await snippet.read(client, 'a', TOKEN + token)) ?? 'stale';

async function closeBooks(token) {
  try {
    await snippet.closeBooks(client, TOKEN + token);
    return 'closed';
  } catch (error) {
    return error.code === 'STALE_FENCING_TOKEN'
      ? `stale: ${error.token - TOKEN} after ${error.newestToken - TOKEN}`
      : error;
  }
}

/** An older holder writes while the row is in the transaction of a newer one, which then commits. */
async function meet(statement, write) {
  await reset(9, 1);
  await controller.run('BEGIN');
  await controller.run(statement, [TOKEN + 3]);
  let hasEnded = false;
  const outcome = write().finally(() => (hasEnded = true));
  const deadline = Date.now() + WAITS_MS;
  for (;;) {
    if (hasEnded) throw new Error('It did not wait for the transaction of the other one');
    if ((await controller.run(controller.waiting)).length > 0) break;
    if (Date.now() > deadline) throw new Error('The database does not say that it waits');
    await sleep(120); // InnoDB renews what it says of its transactions every 0.1 s
  }
  await controller.run('COMMIT');
  return outcome;
}

const outcomes = {};

await reset(9, 1);
outcomes.save = [];
for (const [count, token] of [[5, 2], [8, 1], [5, 2], [4, 3]]) outcomes.save.push(await save('a', count, token)); // prettier-ignore
outcomes.noRow = await save('b', 1, 4);
outcomes.stored = await stored();

await reset(7, 2);
outcomes.read = [await read(2), await read(1), await read(3), await read(2)];

await reset(9, 1);
outcomes.books = [];
for (const token of [2, 1, 2, 3, 2]) outcomes.books.push(await closeBooks(token));
const closings = await controller.run('SELECT token FROM closings ORDER BY token');
outcomes.closings = closings.map(({ token }) => Number(token) - TOKEN);

outcomes.meetings = [
  await meet(`UPDATE stock SET fencing_token = ? WHERE id = 'a'`, () => save('a', 1, 2)),
  await meet(`UPDATE stock SET fencing_token = ? WHERE id = 'a'`, () => read(2)),
  await meet(`INSERT INTO redis_lock_fences (resource, token) VALUES ('books', ?)`, () => closeBooks(2)),
];

outcomes.claims = await CLAIMS[driver]?.({ client, snippet, token: TOKEN, url, reset: () => reset(9, 2) });

await close();
await controller.close();
console.log(JSON.stringify(outcomes, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)));
