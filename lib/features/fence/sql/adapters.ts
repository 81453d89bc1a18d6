import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { describeValue } from '../../../kernel/api/validation.js';
import { dialectNamed, type FenceDialect, type Execute, isAutocommit } from './dialects.js';

type SqlMethod = (...args: never[]) => unknown;

/**
 * The caller's open transaction, from one of these libraries:
 *
 * - pg: a client or pool client after `BEGIN`. Also the `tx` of PGlite, and any object whose `query(text, values)`
 *   resolves to `{ rows }` of PostgreSQL
 * - postgres.js: the `sql` of `sql.begin()`
 * - TypeORM: an `EntityManager` or `QueryRunner`, or the `DataSource` under `typeorm-transactional`
 * - `@nestjs-cls/transactional`: a `TransactionHost`
 * - Prisma: the `tx` of an interactive transaction
 * - MikroORM: an `EntityManager` in a transaction
 * - Drizzle, Knex, Sequelize: their transaction
 * - mysql2: a connection after `beginTransaction()`
 */
export type FenceTransaction =
  | { readonly query: SqlMethod }
  | { readonly unsafe: SqlMethod }
  | { readonly isTransactionActive: SqlMethod; readonly tx: unknown }
  | { readonly $queryRawUnsafe: SqlMethod }
  | { readonly isInTransaction: SqlMethod; readonly execute: SqlMethod }
  | { readonly rollback: SqlMethod; readonly transaction: SqlMethod }
  | { readonly raw: SqlMethod }
  | { readonly rollback: SqlMethod; readonly afterCommit: SqlMethod };

interface SqlTransaction {
  readonly dialect: FenceDialect;
  readonly run: Execute;
}

/** The properties that the adapters read. All of them may be missing. */
type FoundTransaction = { readonly [name: string]: unknown };
type SqlCall = (...args: readonly unknown[]) => Promise<unknown>;

/** An adapter returns `undefined` for a transaction of another library. */
type Adapter = (tx: FoundTransaction) => SqlTransaction | undefined;

const DRIZZLE_KIND = Symbol.for('drizzle:entityKind');

/** In this order, because some libraries have the features of others. */
const ADAPTERS: readonly Adapter[] = [
  function nestjsCls(tx) {
    if (!has(tx, 'isTransactionActive') || !has(tx, 'withTransaction')) return undefined;
    if (call(tx, 'isTransactionActive') !== true)
      throw outside('@nestjs-cls/transactional', 'call it in a method with @Transactional()');
    return adapt(tx['tx']);
  },
  function typeorm(tx) {
    const isDataSource = has(tx, 'createQueryRunner') && 'manager' in tx;
    const manager = isDataSource ? (tx['manager'] as FoundTransaction) : tx;
    const isRunner = has(manager, 'startTransaction') && 'isTransactionActive' in manager;
    if (!isRunner && !(has(manager, 'getRepository') && has(manager, 'query'))) return undefined;
    const runner = (isRunner ? manager : manager['queryRunner']) as FoundTransaction | undefined;
    if (runner?.['isTransactionActive'] !== true)
      throw outside('TypeORM', 'pass the manager of dataSource.transaction()');
    const { options } = (runner['dataSource'] ?? runner['connection']) as { options: FoundTransaction };
    const dialect = dialectNamed(options['type'], 'TypeORM');
    const form = dialect === 'postgres' ? 'numbered' : 'marked';
    return { dialect, run: async (statement, values) => call(runner, 'query', statement[form], values) };
  },
  function prisma(tx) {
    if (!has(tx, '$queryRawUnsafe')) return undefined;
    if (has(tx, '$connect')) throw outside('Prisma', 'pass the tx of prisma.$transaction(async (tx) => { ... })');
    const dialect = dialectNamed(tx['_activeProvider'], 'Prisma');
    const form = dialect === 'postgres' ? 'numbered' : 'marked';
    return { dialect, run: async (statement, values) => call(tx, '$queryRawUnsafe', statement[form], ...values) };
  },
  function mikroOrm(tx) {
    if (!has(tx, 'isInTransaction') || !has(tx, 'execute')) return undefined;
    if (call(tx, 'isInTransaction') !== true) throw outside('MikroORM', 'pass the em of em.transactional()');
    const platform = call(tx, 'getPlatform') as FoundTransaction;
    const isPostgres = call(platform, 'getDefaultSchemaName') === 'public';
    const isMysql = call(platform, 'getDefaultCharset') === 'utf8mb4';
    const dialect = isPostgres ? 'postgres' : isMysql ? 'mysql' : dialectNamed(platform.constructor.name, 'MikroORM');
    // Its `run` returns MySQL's reply, `all` returns rows.
    const method = isMysql ? 'run' : 'all';
    return {
      dialect,
      run: async (statement, values) =>
        call(tx, 'execute', statement.marked, values, values.length > 0 ? method : 'all'),
    };
  },
  function drizzle(tx) {
    const kind = (tx['dialect'] as FoundTransaction | undefined)?.constructor as
      | { [DRIZZLE_KIND]?: string }
      | undefined;
    if (kind?.[DRIZZLE_KIND] === undefined) return undefined;
    const dialect = dialectNamed(kind[DRIZZLE_KIND], 'Drizzle');
    if (!has(tx, 'rollback')) throw outside('Drizzle', 'pass the tx of db.transaction(async (tx) => { ... })');
    if (kind[DRIZZLE_KIND] === 'SQLiteSyncDialect') {
      throw refused(
        'a transaction of this driver of Drizzle is synchronous, so it ends before the guard could wait for the database. Use libsql',
      );
    }
    const [method, form] =
      dialect === 'sqlite'
        ? (['all', 'marked'] as const)
        : (['execute', dialect === 'mysql' ? 'marked' : 'numbered'] as const);
    // The parts of Drizzle's `sql` that it reads.
    const query = (text: string, params: readonly unknown[]) => ({
      getSQL: () => ({ toQuery: () => ({ sql: text, params: [...params] }) }),
    });
    return { dialect, run: async (statement, values) => call(tx, method, query(statement[form], values)) };
  },
  function sequelize(tx) {
    if (has(tx, 'getQueryInterface')) throw outside('Sequelize', 'pass the transaction of sequelize.transaction()');
    const instance = tx['sequelize'] as FoundTransaction | undefined;
    if (instance === undefined || !has(tx, 'afterCommit')) return undefined;
    if (tx['finished'] !== undefined) throw ended('Sequelize');
    const dialect = dialectNamed(call(instance, 'getDialect'), 'Sequelize');
    const run: Execute = async (statement, bind) =>
      call(instance, 'query', statement.numbered, { bind, transaction: tx, raw: true });
    return { dialect, run };
  },
  function knex(tx) {
    if (!has(tx, 'raw') || !('client' in tx)) return undefined;
    if (tx['isTransaction'] !== true) throw outside('Knex', 'pass the trx of knex.transaction()');
    if (call(tx, 'isCompleted') === true) throw ended('Knex');
    const dialect = dialectNamed((tx['client'] as FoundTransaction)['dialect'], 'Knex');
    return { dialect, run: async (statement, values) => call(tx, 'raw', statement.marked, values) };
  },
  function postgresJs(tx) {
    if (!has(tx, 'unsafe')) return undefined;
    // A connection of sql.reserve() does not show whether it is in a transaction.
    if (!has(tx, 'savepoint') && !has(tx, 'release')) throw outside('postgres.js', 'pass the sql of sql.begin()');
    // Prepared, unless the caller turned that off: otherwise each statement takes two round trips.
    const options = { prepare: true };
    return {
      dialect: 'postgres',
      run: async (statement, values) => call(tx, 'unsafe', statement.numbered, values, options),
    };
  },
  function mysql2(tx) {
    if (has(tx, 'getConnection')) throw outside('mysql2', 'pass a connection of the pool, after beginTransaction()');
    if (!has(tx, 'beginTransaction') || !has(tx, 'execute')) return undefined;
    const connection = (has(tx, 'promise') ? call(tx, 'promise') : tx) as FoundTransaction;
    const run: Execute = async (statement, values) => {
      const result = await call(connection, 'execute', statement.marked, values);
      if (isAutocommit(result)) throw outside('mysql2', 'call beginTransaction() first');
      return result;
    };
    return { dialect: 'mysql', run };
  },
  function pg(tx) {
    if (!has(tx, 'query')) return undefined;
    if ('idleCount' in tx) throw outside('pg', 'pass a client of the pool, after BEGIN');
    if (has(tx, 'transaction')) throw outside('PGlite', 'pass the tx of db.transaction()');
    const run: Execute = async (statement, values) => {
      const result = await call(tx, 'query', statement.numbered, values);
      // After the statement: BEGIN may have been sent just before it, without waiting.
      if (has(tx, 'getTransactionStatus') && call(tx, 'getTransactionStatus') === 'I')
        throw outside('pg', 'send BEGIN first');
      return result;
    };
    return { dialect: 'postgres', run };
  },
];

/**
 * Finds out how to run statements in the transaction.
 *
 * @throws InvalidLockOptionsError when it is not open, or of no library that is known
 */
export function adapt(tx: unknown): SqlTransaction {
  const found = (typeof tx === 'object' || typeof tx === 'function') && tx !== null ? (tx as FoundTransaction) : {};
  for (const adapter of ADAPTERS) {
    const transaction = adapter(found);
    if (transaction) return transaction;
  }
  throw refused(
    `it needs an open transaction of pg, postgres.js, TypeORM, @nestjs-cls/transactional, Prisma, MikroORM, Drizzle, Knex, ` +
      `Sequelize or mysql2, not ${describeValue(tx)}`,
  );
}

function has(tx: FoundTransaction, method: string): boolean {
  return typeof tx[method] === 'function';
}

function call(tx: FoundTransaction, method: string, ...args: readonly unknown[]): unknown {
  return (tx[method] as SqlCall).apply(tx, args as unknown[]);
}

const UNLOCKED = 'the row with the fencing token would not stay locked until your writes are committed';

function outside(library: string, instead: string): InvalidLockOptionsError {
  return refused(`no transaction of ${library} is open here, so ${UNLOCKED}. Instead, ${instead}`);
}

function ended(library: string): InvalidLockOptionsError {
  return refused(
    `this transaction of ${library} has ended, so ${UNLOCKED}. Call fence.guard before the transaction ends`,
  );
}

function refused(why: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`fence.guard cannot be used here: ${why}.`, 'tx');
}
