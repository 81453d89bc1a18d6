import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import type { FenceTransaction } from 'nestjs-redis-lock/fence';
import pg from 'pg';

export type Database = 'postgres' | 'mysql';
export type Row = Record<string, unknown>;
/** A statement with a `?` for each value. Resolves to its rows. */
export type Query = (text: string, values?: (string | number)[]) => Promise<Row[]>;
export type Work = (tx: FenceTransaction, query: Query) => Promise<void>;

export interface SqlClient {
  readonly query: Query;
  /** Commits when the work has resolved, and rolls back when it rejects. */
  transaction(level: string, work: Work): Promise<void>;
  close(): Promise<void>;
}

export const open = (database: Database, url: string, connections: number): SqlClient =>
  database === 'postgres' ? openPostgres(url, connections) : openMysql(url, connections);

function openPostgres(connectionString: string, max: number): SqlClient {
  const pool = new pg.Pool({ connectionString, max });
  const queryOf =
    (client: pg.Pool | pg.PoolClient): Query =>
    async (text, values) => {
      let number = 0;
      const { rows } = await client.query<Row>(text.replace(/\?/g, () => `$${++number}`), values); // prettier-ignore
      return rows;
    };
  return {
    query: queryOf(pool),
    transaction: (level, work) =>
      inPostgres(pool, (client) => work(client, queryOf(client)), `BEGIN ISOLATION LEVEL ${level}`),
    close: () => pool.end(),
  };
}

function openMysql(uri: string, connectionLimit: number): SqlClient {
  const pool = createPool({ uri, connectionLimit });
  const queryOf =
    (connection: Pool | PoolConnection): Query =>
    async (text, values) =>
      (await connection.query(text, values))[0] as Row[];
  return {
    query: queryOf(pool),
    transaction: (level, work) => inMysql(pool, (connection) => work(connection, queryOf(connection)), level),
    close: () => pool.end(),
  };
}

export async function inPostgres(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<void>,
  begin = 'BEGIN',
): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query(begin);
    await work(client);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

export async function inMysql(
  pool: Pool,
  work: (connection: PoolConnection) => Promise<void>,
  level?: string,
): Promise<void> {
  const connection = await pool.getConnection();
  try {
    if (level !== undefined) await connection.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
    await connection.beginTransaction();
    await work(connection);
    await connection.commit();
  } catch (error) {
    await connection.rollback();
    throw error;
  } finally {
    connection.release();
  }
}
