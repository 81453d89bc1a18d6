// Each library whose transactions fence.guard takes, on each database that our tests have for it.
import { createRequire } from 'node:module';
import { createClient } from '@libsql/client';
import type { SqlEntityManager } from '@mikro-orm/knex';
import { MikroORM as MikroLibsql } from '@mikro-orm/libsql';
import { MikroORM as MikroMysql } from '@mikro-orm/mysql';
import { MikroORM as MikroPostgres } from '@mikro-orm/postgresql';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClsPluginTransactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { PrismaLibSql } from '@prisma/adapter-libsql';
import { PrismaMariaDb } from '@prisma/adapter-mariadb';
import { PrismaPg } from '@prisma/adapter-pg';
import { type SQL, sql } from 'drizzle-orm';
import { drizzle as drizzleLibsql } from 'drizzle-orm/libsql';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { drizzle as drizzleSqlJs } from 'drizzle-orm/sql-js';
import knex from 'knex';
import { createPool as createCallbackPool } from 'mysql2';
import { createPool } from 'mysql2/promise';
import { ClsModule } from 'nestjs-cls';
import type { FenceTransaction } from 'nestjs-redis-lock/fence';
import pg from 'pg';
import postgres from 'postgres';
import { Sequelize } from 'sequelize';
import initSqlJs from 'sql.js';
import { DataSource } from 'typeorm';
import { openPglite } from '../../../support/sql/pglite.mjs';
import { PrismaClient } from '../generated/client.js';
import { PrismaClient as PrismaMysql } from '../generated-mysql/client.js';
import { PrismaClient as PrismaSqlite } from '../generated-sqlite/client.js';
import { inMysql, inPostgres } from './sql-client.js';

export interface Library {
  readonly database: 'postgres' | 'mysql' | 'sqlite';
  /** Commits when the work has resolved, and rolls back when it rejects. `write` is a statement of the same transaction. */
  transaction(
    work: (tx: FenceTransaction, write: (text: string) => PromiseLike<unknown>) => Promise<void>,
  ): Promise<unknown>;
  /** Runs a statement outside of transactions. Resolves to the rows, if there are any. */
  run(text: string): Promise<unknown>;
  /** Values that look like an open transaction and are none. */
  readonly outside: Readonly<Record<string, FenceTransaction>>;
  close(): Promise<unknown>;
}

export interface Urls {
  readonly postgres: string;
  readonly mysql: string;
  /** A file that is not there yet. */
  readonly sqlite: string;
}

const require = createRequire(import.meta.url);
/** sqlite3 itself is downloaded by its install script. This package has the same interface, in its default export. */
const { default: sqlite3 } = require('@appthreat/sqlite3') as { default: object };

/** mysql2 resolves to the rows and something else, and most others to the rows, or to an object with them. */
const rowsOf = (result: unknown, database: Library['database']): unknown =>
  database === 'mysql' ? (result as unknown[])[0] : ((result as { rows?: unknown }).rows ?? result);

export const LIBRARIES: Readonly<Record<string, (urls: Urls) => Promise<Library>>> = {
  async pg({ postgres: url }) {
    const pool = new pg.Pool({ connectionString: url });
    const idle = await pool.connect();
    return {
      database: 'postgres',
      transaction: (work) => inPostgres(pool, (client) => work(client, (text) => client.query(text))),
      run: async (text) => rowsOf(await pool.query(text), 'postgres'),
      outside: { pool, 'a client without BEGIN': idle },
      close: async () => {
        idle.release();
        await pool.end();
      },
    };
  },
  async 'postgres.js'({ postgres: url }) {
    const connection = postgres(url, { onnotice() {} });
    return {
      database: 'postgres',
      transaction: (work) => connection.begin((tx) => work(tx, (text) => tx.unsafe(text))),
      run: (text) => connection.unsafe(text),
      outside: { sql: connection },
      close: () => connection.end(),
    };
  },
  async PGlite() {
    const db = await openPglite();
    return {
      database: 'postgres',
      transaction: (work) => db.transaction((tx) => work(tx, (text) => tx.query(text))),
      run: async (text) => rowsOf(await db.query(text), 'postgres'),
      outside: { db },
      close: () => db.close(),
    };
  },
  'TypeORM on PostgreSQL': ({ postgres: url }) => typeorm('postgres', new DataSource({ type: 'postgres', url })),
  'TypeORM on MariaDB': ({ mysql: url }) => typeorm('mysql', new DataSource({ type: 'mariadb', url })),
  'TypeORM on SQLite (sql.js)': () => typeorm('sqlite', new DataSource({ type: 'sqljs' })),
  'TypeORM on SQLite (better-sqlite3)': ({ sqlite: database }) =>
    typeorm('sqlite', new DataSource({ type: 'better-sqlite3', database })),
  async '@nestjs-cls/transactional'({ postgres: url }) {
    const adapter = new TransactionalAdapterTypeOrm({ dataSourceToken: getDataSourceToken() });
    @Module({
      imports: [
        TypeOrmModule.forRoot({ type: 'postgres', url }),
        ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ imports: [TypeOrmModule], adapter })] }),
      ],
    })
    class AppModule {}
    const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error'] });
    const host = app.get<TransactionHost<TransactionalAdapterTypeOrm>>(TransactionHost);
    return {
      database: 'postgres',
      transaction: (work) => host.withTransaction(() => work(host, (text) => host.tx.query(text))),
      run: (text) => host.tx.query(text),
      outside: { 'the host without a transaction': host },
      close: () => app.close(),
    };
  },
  'Prisma on PostgreSQL': async ({ postgres: connectionString }) =>
    prisma('postgres', new PrismaClient({ adapter: new PrismaPg({ connectionString }) })),
  'Prisma on MariaDB': async ({ mysql: url }) =>
    prisma('mysql', new PrismaMysql({ adapter: new PrismaMariaDb(url.replace('mysql:', 'mariadb:')) }) as never),
  'Prisma on SQLite': async ({ sqlite: url }) =>
    prisma('sqlite', new PrismaSqlite({ adapter: new PrismaLibSql({ url: `file:${url}` }) }) as never),
  'MikroORM on PostgreSQL': async ({ postgres: clientUrl }) =>
    mikroOrm(
      'postgres',
      await MikroPostgres.init({ clientUrl, entities: [], discovery: { warnWhenNoEntities: false } }),
    ),
  'MikroORM on MariaDB': async ({ mysql: clientUrl }) =>
    mikroOrm('mysql', await MikroMysql.init({ clientUrl, entities: [], discovery: { warnWhenNoEntities: false } })),
  'MikroORM on SQLite (libsql)': async ({ sqlite: dbName }) =>
    mikroOrm('sqlite', await MikroLibsql.init({ dbName, entities: [], discovery: { warnWhenNoEntities: false } })),
  async 'Drizzle on pg'({ postgres: url }) {
    const client = new pg.Pool({ connectionString: url });
    return drizzle('postgres', drizzlePg(client), client);
  },
  async 'Drizzle on postgres.js'({ postgres: url }) {
    const client = postgres(url, { onnotice() {} });
    return drizzle('postgres', drizzlePostgresJs(client), client);
  },
  async 'Drizzle on MariaDB'({ mysql: url }) {
    const client = createPool(url);
    return drizzle('mysql', drizzleMysql(client), client);
  },
  async 'Drizzle on SQLite'({ sqlite: url }) {
    const client = createClient({ url: `file:${url}` });
    const db = drizzleLibsql(client);
    const { Database } = await initSqlJs();
    const synchronous = await new Promise<FenceTransaction>((resolve) =>
      drizzleSqlJs(new Database()).transaction((tx) => resolve(tx as never)),
    );
    return {
      database: 'sqlite',
      transaction: (work) => db.transaction((tx) => work(tx, (text) => tx.run(sql.raw(text)))),
      run: (text) => db.all(sql.raw(text)),
      outside: { db: db as never, 'a synchronous transaction': synchronous },
      close: async () => client.close(),
    };
  },
  'Knex on PostgreSQL': ({ postgres: connection }) => withKnex('postgres', knex({ client: 'pg', connection })),
  'Knex on MariaDB': ({ mysql: connection }) => withKnex('mysql', knex({ client: 'mysql2', connection })),
  'Knex on SQLite (better-sqlite3)': ({ sqlite }) => withKnex('sqlite', knexOnFile('better-sqlite3', sqlite)),
  'Knex on SQLite (sqlite3)': ({ sqlite }) => withKnex('sqlite', knexOnFile(OnSqlite3, sqlite)),
  'Sequelize on PostgreSQL': ({ postgres: url }) => sequelize('postgres', new Sequelize(url, { logging: false })),
  'Sequelize on MariaDB': ({ mysql: url }) => sequelize('mysql', new Sequelize(url, { logging: false })),
  'Sequelize on SQLite (sqlite3)': ({ sqlite: storage }) =>
    sequelize('sqlite', new Sequelize({ dialect: 'sqlite', dialectModule: sqlite3, storage, logging: false })),
  async mysql2({ mysql: url }) {
    const pool = createPool(url);
    const idle = await pool.getConnection();
    return {
      database: 'mysql',
      transaction: (work) => inMysql(pool, (connection) => work(connection, (text) => connection.query(text))),
      run: async (text) => (await pool.query(text))[0],
      outside: { pool, 'a connection without beginTransaction()': idle },
      close: async () => {
        idle.release();
        await pool.end();
      },
    };
  },
  async 'mysql2 with callbacks'({ mysql: url }) {
    const pool = createCallbackPool(url);
    const idle = await new Promise<FenceTransaction>((resolve, reject) =>
      pool.getConnection((error, connection) => (error ? reject(error) : resolve(connection))),
    );
    return {
      database: 'mysql',
      transaction: (work) =>
        inMysql(pool.promise(), (connection) => work(connection.connection as never, (text) => connection.query(text))),
      run: async (text) => (await pool.promise().query(text))[0],
      outside: { pool, 'a connection without beginTransaction()': idle },
      close: async () => {
        (idle as unknown as { release(): void }).release();
        await pool.promise().end();
      },
    };
  },
};

async function drizzle<Tx extends { execute(query: SQL): PromiseLike<unknown> }>(
  database: Library['database'],
  db: Pick<Tx, 'execute'> & { transaction(work: (tx: Tx) => Promise<void>): Promise<unknown> },
  client: { end(): Promise<void> },
): Promise<Library> {
  return {
    database,
    transaction: (work) => db.transaction((tx) => work(tx as never, (text) => tx.execute(sql.raw(text)))),
    run: async (text) => rowsOf(await db.execute(sql.raw(text)), database),
    outside: { db: db as never },
    close: () => client.end(),
  };
}

async function typeorm(database: Library['database'], dataSource: DataSource): Promise<Library> {
  await dataSource.initialize();
  let isRunner = false;
  return {
    database,
    // In turns with the manager, and with the query runner.
    transaction: (work) =>
      dataSource.transaction((manager) => {
        isRunner = !isRunner;
        return work(isRunner ? manager.queryRunner! : manager, (text) => manager.query(text));
      }),
    run: (text) => dataSource.query(text),
    outside: { dataSource, manager: dataSource.manager, 'a query runner': dataSource.createQueryRunner() },
    close: () => dataSource.destroy(),
  };
}

async function prisma(database: Library['database'], client: PrismaClient): Promise<Library> {
  return {
    database,
    transaction: (work) => client.$transaction((tx) => work(tx, (text) => tx.$executeRawUnsafe(text))),
    run: (text) => (text.startsWith('SELECT') ? client.$queryRawUnsafe(text) : client.$executeRawUnsafe(text)),
    outside: { client },
    close: () => client.$disconnect(),
  };
}

async function mikroOrm(
  database: Library['database'],
  orm: { em: SqlEntityManager; close(force: boolean): Promise<void> },
): Promise<Library> {
  const em = orm.em.fork();
  return {
    database,
    transaction: (work) => em.transactional((tx) => work(tx, (text) => tx.execute(text))),
    run: (text) => em.execute(text),
    outside: { em },
    close: () => orm.close(true),
  };
}

class OnSqlite3 extends (require('knex/lib/dialects/sqlite3/index.js') as typeof knex.Client) {
  _driver(): unknown {
    return sqlite3;
  }
}

const knexOnFile = (client: string | typeof OnSqlite3, filename: string) =>
  knex({ client, connection: { filename }, useNullAsDefault: true });

async function withKnex(database: Library['database'], db: ReturnType<typeof knex>): Promise<Library> {
  const done = await db.transaction();
  await done.commit();
  return {
    database,
    transaction: (work) => db.transaction((trx) => work(trx, (text) => trx.raw(text))),
    run: async (text) => rowsOf(await db.raw(text), database),
    outside: { knex: db, 'a transaction that has ended': done },
    close: () => db.destroy(),
  };
}

async function sequelize(database: Library['database'], instance: Sequelize): Promise<Library> {
  const done = await instance.transaction();
  await done.rollback();
  return {
    database,
    transaction: (work) =>
      instance.transaction((transaction) => work(transaction, (text) => instance.query(text, { transaction }))),
    run: async (text) => (await instance.query(text))[0],
    outside: { sequelize: instance as never, 'a transaction that has ended': done },
    close: () => instance.close(),
  };
}
