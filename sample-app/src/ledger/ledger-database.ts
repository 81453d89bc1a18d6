import { Injectable, type OnApplicationShutdown, ServiceUnavailableException } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { settings } from '../settings.js';

/** The books are in PostgreSQL, not in the Redis that replaces the shop's other database. */
@Injectable()
export class LedgerDatabase implements OnApplicationShutdown {
  readonly #pool = settings.databaseUrl === '' ? undefined : new Pool({ connectionString: settings.databaseUrl });

  constructor() {
    // A broken connection is replaced when it is needed.
    this.#pool?.on('error', () => {});
  }

  /** Commits when the work has resolved, and rolls back when it throws. */
  async transaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    if (!this.#pool) throw new ServiceUnavailableException('The books are in PostgreSQL: set DATABASE_URL');
    const client = await this.#pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {});
      throw error;
    } finally {
      client.release();
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#pool?.end();
  }
}
