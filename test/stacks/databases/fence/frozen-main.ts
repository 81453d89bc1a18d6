// The program of frozen.slow.test.ts: holders that freeze before their COMMIT, with the guard and without.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fence } from 'nestjs-redis-lock/fence';
import { type Database, open, type SqlClient } from './sql-client.js';
import type { Passable, SellerOptions, SellerResult } from './seller.js';

const [seller, database, url, redisUrl, rounds, prune] = process.argv.slice(2) as [
  string,
  Database,
  string,
  string,
  string,
  string,
];
/** The number of holders that freeze together. */
const LANES = 18;
const STOCK = 1_000_000;
/** Three leases: see seller.ts. */
const STOPPED_MS = 300;
/** Printed by the seller before it stops, followed by the holders that can be passed. */
const STOPPING = 'stopping ';
const PATIENCE_MS = 30_000;

const client = open(database, url, 4);
const key = database === 'postgres' ? 'BIGSERIAL' : 'BIGINT AUTO_INCREMENT';

async function prepare(): Promise<void> {
  for (const table of ['stock', 'sales', 'redis_lock_fences']) await client.query(`DROP TABLE IF EXISTS ${table}`);
  await client.query(fence.schema(database));
  await client.query('CREATE TABLE stock (lane INTEGER PRIMARY KEY, left_over INTEGER NOT NULL)');
  await client.query(
    `CREATE TABLE sales (id ${key} PRIMARY KEY, lane INTEGER NOT NULL, left_over INTEGER NOT NULL, token BIGINT NOT NULL)`,
  );
  for (let lane = 0; lane < LANES; lane++) await client.query('INSERT INTO stock VALUES (?, ?)', [lane, STOCK]);
}

function start(options: SellerOptions): { child: ChildProcess; said: AsyncIterableIterator<string> } {
  const child = spawn(process.execPath, [seller, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] });
  return { child, said: createInterface({ input: child.stdout! })[Symbol.asyncIterator]() };
}

/** Until there is a sale with a later token in each of these lanes, however busy the machine is. */
async function untilPassed(holders: readonly Passable[]): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (;;) {
    const rows = await client.query('SELECT lane, MAX(token) AS token FROM sales GROUP BY lane');
    const newest = new Map(rows.map(({ lane, token }) => [Number(lane), Number(token)]));
    const left = holders.filter(({ lane, token }) => !(newest.get(lane)! > token));
    if (left.length === 0) return;
    if (performance.now() > giveUpAt) throw new Error(`Nobody sells in the lanes of ${JSON.stringify(left)}`);
    await sleep(10);
  }
}

/** Freezes one process repeatedly while another one works. */
async function run(isGuarded: boolean, standing: number) {
  await prepare();
  const options = { database, url, redisUrl, lanes: LANES, isGuarded };
  const busy = start({ ...options, rounds: 0 });
  // Creates the rows of the fence, because an insert may block the rows beside it.
  await untilPassed(Array.from({ length: LANES }, (_, lane) => ({ lane, token: 0 })));
  const frozen = start({ ...options, rounds: standing });
  let frozenSaid: SellerResult | undefined;
  for await (const line of frozen.said) {
    if (!line.startsWith(STOPPING)) {
      frozenSaid = JSON.parse(line) as SellerResult;
      break;
    }
    await sleep(STOPPED_MS);
    await untilPassed(JSON.parse(line.slice(STOPPING.length)) as Passable[]);
    frozen.child.kill('SIGCONT');
  }
  busy.child.stdin!.end();
  const { outcomes: others } = JSON.parse((await busy.said.next()).value as string) as SellerResult;
  return { stoodStill: frozenSaid?.stoodStill, frozen: frozenSaid?.outcomes, others, ...(await look()) };
}

/** Reads the sales from the tables. */
async function look() {
  const sales = await client.query('SELECT lane, left_over, token FROM sales ORDER BY id');
  const stock = await client.query('SELECT left_over FROM stock');
  const sold = stock.reduce((sum, row) => sum + STOCK - Number(row['left_over']), 0);
  const newest = new Map<unknown, number>();
  let stale = 0;
  for (const { lane, token } of sales) {
    if (Number(token) < (newest.get(lane) ?? 0)) stale++;
    newest.set(lane, Math.max(Number(token), newest.get(lane) ?? 0));
  }
  const steps = new Set(sales.map(({ lane, left_over: left }) => `${String(lane)} ${String(left)}`));
  return { sales: sales.length, lostUpdates: sales.length - sold, sameStep: sales.length - steps.size, stale };
}

/** Two transactions guard two resources in opposite orders. */
async function deadlock(db: SqlClient): Promise<string[]> {
  let met = 0;
  let bothHold!: () => void;
  const both = new Promise<void>((resolve) => (bothHold = resolve));
  const guardBoth = (first: string, second: string) =>
    db.transaction('READ COMMITTED', async (tx) => {
      await fence.guard(tx, { resource: first, token: 1 });
      if (++met === 2) bothHold();
      await both;
      await fence.guard(tx, { resource: second, token: 1 });
    });
  const ended = await Promise.allSettled([guardBoth('a', 'b'), guardBoth('b', 'a')]);
  const codes = ended.map((end) =>
    end.status === 'fulfilled' ? 'committed' : String((end.reason as { code?: string }).code),
  );
  return codes.sort();
}

/** The statement of docs/guide/fencing.md that removes old rows. Resolves to what is left of 1,500 old ones and a new one. */
async function pruned(): Promise<number[]> {
  await client.query('DELETE FROM redis_lock_fences');
  const rows = Array.from({ length: 1_500 }, (_, i) => `('old ${i}', 1, '2020-01-01 00:00:00')`);
  await client.query(`INSERT INTO redis_lock_fences (resource, token, raised_at) VALUES ${rows.join()}`);
  await client.query(`INSERT INTO redis_lock_fences (resource, token) VALUES ('new', 1)`);
  const left: number[] = [];
  for (let time = 0; time < 3; time++) {
    await client.query(prune);
    left.push((await client.query('SELECT token FROM redis_lock_fences')).length);
  }
  return left;
}

const guarded = await run(true, Number(rounds));
const unguarded = await run(false, 100);
console.log(
  JSON.stringify({
    guarded,
    unguarded,
    deadlock: await deadlock(client),
    pruned: await pruned(),
  }),
);
await client.close();
