import { setTimeout as sleep } from 'node:timers/promises';
import { fence } from 'nestjs-redis-lock/fence';
import { Client } from 'pg';

const STATEMENTS = [
  fence.schema('postgres'),
  'CREATE TABLE stock (id TEXT PRIMARY KEY, count INTEGER NOT NULL, fencing_token BIGINT NOT NULL DEFAULT 0)',
  // A COMMIT of a transaction that has written stock waits for as long as the controller holds this advisory lock.
  `CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS
   $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END $$`,
  `CREATE CONSTRAINT TRIGGER hold_commit AFTER UPDATE ON stock DEFERRABLE INITIALLY DEFERRED
   FOR EACH ROW EXECUTE FUNCTION hold_commit()`,
];
const WAITS_MS = 20_000;

/** The table of the stories, and how far COMMIT gets. */
export class Database {
  readonly #client: Client;

  constructor(url: string) {
    this.#client = new Client({ connectionString: url });
  }

  async open(): Promise<void> {
    await this.#client.connect();
    for (const statement of STATEMENTS) await this.#client.query(statement);
  }

  async put(count: number): Promise<void> {
    await this.#client.query('DELETE FROM stock');
    await this.#client.query("INSERT INTO stock (id, count) VALUES ('7', $1), ('8', $1)", [count]);
  }

  async count(id = '7'): Promise<number> {
    const { rows } = await this.#client.query<{ count: number }>('SELECT count FROM stock WHERE id = $1', [id]);
    return rows[0]!.count;
  }

  async holdCommits(): Promise<void> {
    await this.#client.query('SELECT pg_advisory_lock(7)');
  }

  async letCommit(): Promise<void> {
    await this.#client.query('SELECT pg_advisory_unlock(7)');
  }

  /** Waits until so many transactions wait in the database: for the controller at their COMMIT, or for a row. */
  async whenWaiting(transactions: number): Promise<void> {
    for (const deadline = Date.now() + WAITS_MS; ; await sleep(10)) {
      const { rows } = await this.#client.query<{ waiting: number }>(
        "SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      if (rows[0]!.waiting === transactions) return;
      if (Date.now() > deadline) throw new Error(`${rows[0]!.waiting} transactions wait, not ${transactions}`);
    }
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
