import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';

/** The databases that `fence.guard` supports. `mysql` includes MariaDB. */
export type FenceDialect = 'postgres' | 'mysql' | 'sqlite';

export const TABLE = 'redis_lock_fences';

/** Runs one statement in the transaction of the caller. Resolves to what its driver returns. */
export type Execute = (statement: Statement, values: readonly (string | number)[]) => Promise<unknown>;

/** A statement as drivers want it: with a `?` for each value, or with `$1`, `$2` and so on. */
export class Statement {
  readonly numbered: string;

  constructor(readonly marked: string) {
    let number = 0;
    this.numbered = marked.replace(/\?/g, () => `$${++number}`);
  }
}

interface Dialect {
  /** One row for each resource. Names are compared byte by byte. */
  readonly schema: string;
  /**
   * Stores the token unless a larger one is stored, locks the row until the transaction ends, and returns the token
   * that is stored now. If that is larger, the statement fails on databases that then refuse to commit.
   */
  readonly raise: (run: Execute, resource: string, token: number) => Promise<number>;
}

/** Makes the statement of a database with `ON CONFLICT`. @param newToken the token to store beside a row that is there */
const upsert = (insert: string, newToken: string): Statement =>
  new Statement(
    `${insert} ${TABLE} AS held (resource, token) VALUES (?, ?) ON CONFLICT (resource) DO UPDATE ` +
      `SET token = ${newToken}, raised_at = excluded.raised_at RETURNING token`,
  );

const STALE = `${TABLE} has token`;
/** PostgreSQL commits no transaction in which a statement has failed. So a text is cast that is no number. */
const RAISE_POSTGRES = upsert(
  'INSERT INTO',
  `CASE WHEN held.token > excluded.token THEN CAST('${STALE} ' || held.token AS BIGINT) ELSE excluded.token END`,
);
// ABORT is the default. Some libraries return no rows of a text that begins with INSERT INTO.
const RAISE_SQLITE = upsert('INSERT OR ABORT INTO', 'MAX(held.token, excluded.token)');

/**
 * MySQL returns no row of an INSERT, and its count of affected rows is the same for an equal token and for a stale one.
 * So `LAST_INSERT_ID(x)` puts the stored token into the reply of the statement. The name is encoded here, because a
 * connection may have another character set.
 */
const RAISE = new Statement(
  `INSERT INTO ${TABLE} (resource, token) VALUES (CONVERT(? USING utf8mb4), LAST_INSERT_ID(?)) ` +
    `ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST(token, ?)), raised_at = CURRENT_TIMESTAMP`,
);
/** For drivers that do not show that part of the reply. It reads no table, so that no isolation level changes it. */
const RAISED = new Statement('SELECT LAST_INSERT_ID() AS token');

export const DIALECTS: Readonly<Record<FenceDialect, Dialect>> = {
  postgres: {
    schema: `CREATE TABLE IF NOT EXISTS ${TABLE} (
  resource  TEXT COLLATE "C" PRIMARY KEY,
  token     BIGINT NOT NULL,
  raised_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP
)`,
    raise: async (run, resource, token) => {
      try {
        return tokenOf(await run(RAISE_POSTGRES, [resource, token]));
      } catch (error) {
        const [, newest] = findInError(error, new RegExp(`${STALE} (\\d+)`)) ?? [];
        if (newest === undefined) throw error;
        return Number(newest);
      }
    },
  },
  mysql: {
    schema: `CREATE TABLE IF NOT EXISTS ${TABLE} (
  resource  VARBINARY(512) PRIMARY KEY,
  token     BIGINT NOT NULL,
  raised_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE = InnoDB`,
    raise: async (run, resource, token) => {
      const result = await run(RAISE, [resource, token, token]);
      return headerOf(result)?.insertId ?? tokenOf(await run(RAISED, []));
    },
  },
  sqlite: {
    schema: `CREATE TABLE IF NOT EXISTS ${TABLE} (
  resource  TEXT PRIMARY KEY,
  token     BIGINT NOT NULL,
  raised_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
)`,
    raise: async (run, resource, token) => tokenOf(await run(RAISE_SQLITE, [resource, token])),
  },
};

/** The token of the only row. Drivers return rows, an object with rows, or rows and something else. */
function tokenOf(result: unknown): number {
  const rows: unknown = (result as { rows?: unknown }).rows ?? result;
  const [first] = rows as [unknown];
  const { token } = (Array.isArray(first) ? first[0] : first) as { token: unknown };
  return Number(token);
}

/** The properties in which libraries wrap the driver's error. */
const WRAPPED = ['cause', 'driverError', 'original', 'parent', 'previous', 'meta', 'driverAdapterError'];

/** Looks for a code or a message in an error of a database, also if a library has wrapped it. */
export function findInError(error: unknown, pattern: RegExp, depth = 0): RegExpExecArray | undefined {
  if (typeof error !== 'object' || error === null || depth > 5) return undefined;
  const facts = error as Record<string, unknown>;
  for (const name of ['code', 'errno', 'originalCode', 'message']) {
    const found = pattern.exec(String(facts[name]));
    if (found) return found;
  }
  for (const name of WRAPPED) {
    const found = findInError(facts[name], pattern, depth + 1);
    if (found) return found;
  }
  return undefined;
}

/** Returns MySQL's result header, if the driver has it. */
function headerOf(result: unknown): { insertId: number; status: number | undefined } | undefined {
  const header: unknown = Array.isArray(result) ? result[0] : result;
  // Sequelize returns the number itself.
  const { insertId, serverStatus } =
    typeof header === 'number' ? { insertId: header, serverStatus: undefined } : ((header ?? {}) as MysqlHeader);
  return insertId === undefined ? undefined : { insertId: Number(insertId), status: serverStatus };
}

interface MysqlHeader {
  readonly insertId?: number | bigint | string;
  readonly serverStatus?: number;
}

const IN_TRANSACTION = 1;

/** Returns true if the reply of a MySQL server shows that no transaction is open. */
export function isAutocommit(result: unknown): boolean {
  const status = headerOf(result)?.status;
  return status !== undefined && (status & IN_TRANSACTION) === 0;
}

/** The dialect that a library means by a name of its own. */
export function dialectNamed(name: unknown, library: string): FenceDialect {
  const text = String(name);
  if (/postgres|^pg|cockroach/i.test(text)) return 'postgres';
  if (/mysql|maria/i.test(text)) return 'mysql';
  if (/sqlite|sqljs|libsql|^expo$|^capacitor$|^cordova$|^nativescript$|^react-native$/i.test(text)) return 'sqlite';
  throw new InvalidLockOptionsError(
    `fence.guard supports PostgreSQL, MySQL, MariaDB and SQLite, but not the database of this ${library} transaction (${text}).`,
    'tx',
  );
}
