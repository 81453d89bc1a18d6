import { createPool } from 'mysql2/promise';
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
    async transaction(level, work) {
      const client = await pool.connect();
      try {
        await client.query(`BEGIN ISOLATION LEVEL ${level}`);
        await work(client, queryOf(client));
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    close: () => pool.end(),
  };
}

function openMysql(uri: string, connectionLimit: number): SqlClient {
  const pool = createPool({ uri, connectionLimit });
  return {
    query: async (text, values) => (await pool.query(text, values))[0] as Row[],
    async transaction(level, work) {
      const connection = await pool.getConnection();
      try {
        await connection.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
        await connection.beginTransaction();
        await work(connection, async (text, values) => (await connection.query(text, values))[0] as Row[]);
        await connection.commit();
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        connection.release();
      }
    },
    close: () => pool.end(),
  };
}
