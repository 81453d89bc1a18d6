// Connects each driver of docs/guide/fencing-drivers.md. `client` is the first argument of its snippet's functions.

/** @typedef {{ client: any, close(): Promise<void> }} Connection */

/** @type {Record<string, (url: string, snippet: any) => Promise<Connection>>} */
export const CONNECTIONS = {
  async pg(url) {
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString: url });
    return { client: pool, close: () => pool.end() };
  },
  async typeorm(url, { Stock }) {
    const { DataSource } = await import('typeorm');
    const dataSource = await new DataSource({ type: 'postgres', url, entities: [Stock] }).initialize();
    return { client: dataSource, close: () => dataSource.destroy() };
  },
  async prisma(url, { folder }) {
    const { PrismaPg } = await import('@prisma/adapter-pg');
    const { PrismaClient } = await import(`${folder}/generated/prisma/client.js`);
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
    return { client: prisma, close: () => prisma.$disconnect() };
  },
  async 'mikro-orm'(url, { Stock }) {
    const { MikroORM } = await import('@mikro-orm/postgresql');
    const orm = await MikroORM.init({ clientUrl: url, entities: [Stock] });
    return { client: orm.em.fork(), close: () => orm.close(true) };
  },
  async mysql2(url) {
    const { createPool } = await import('mysql2/promise');
    const pool = createPool(url);
    return { client: pool, close: () => pool.end() };
  },
};

/**
 * A second connection, with which the test prepares and looks.
 *
 * @typedef {{
 *   run(sql: string, values?: (string | number)[]): Promise<any[]>, waiting: string, close(): Promise<void>
 * }} Controller
 */

/** @type {Record<'pg' | 'mysql2', (url: string) => Promise<Controller>>} */
export const CONTROLLERS = {
  async pg(url) {
    const { default: pg } = await import('pg');
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const run = async (sql, values) => {
      let number = 0;
      return (
        await client.query(
          sql.replace(/\?/g, () => `$${++number}`),
          values,
        )
      ).rows;
    };
    return { run, waiting: `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`, close: () => client.end() };
  },
  async mysql2(url) {
    const { createConnection } = await import('mysql2/promise');
    const connection = await createConnection(url);
    const waiting = `SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`;
    return {
      run: async (sql, values) => (await connection.query(sql, values))[0],
      waiting,
      close: () => connection.end(),
    };
  },
};
