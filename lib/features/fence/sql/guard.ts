import { InvalidLockOptionsError, InvalidResourceError } from '../../../kernel/api/errors.js';
import type { Lease } from '../../../kernel/api/lease.js';
import { isSharedMode } from '../../../kernel/api/lock-mode.js';
import { Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { checkResource } from '../../../kernel/api/resource.js';
import { quote } from '../../../kernel/util/quoted.js';
import { adapt, type FenceTransaction } from './adapters.js';
import { DIALECTS, type FenceDialect, findInError, TABLE } from './dialects.js';
import { StaleFencingTokenError } from '../core/fence-errors.js';

/** The holder that writes in a transaction: its resource, and the fencing token of its lease. */
export interface FencedHolder {
  readonly resource: string;
  readonly token: number;
}

const HOLDER = new OptionTable({
  resource: Option.checked<string>((option, value) => void checkResource(value, `fence.guard: ${option}`)).required(),
  token: Option.atLeast(1, 'a fencing token').required(),
} satisfies OptionsOf<FencedHolder>);

const DIALECT = Option.oneOf<FenceDialect>(['postgres', 'mysql', 'sqlite']);

/** @see the JSDoc of `fence` */
export async function guardTransaction(tx: FenceTransaction, holder: Lease | FencedHolder): Promise<void> {
  const { resource, token } = isLease(holder) ? holderOf(holder) : checkHolder(holder);
  const { dialect, run } = adapt(tx);
  if (dialect === 'postgres' && resource.includes('\0')) {
    throw new InvalidResourceError(
      `fence.guard: resource ${quote(resource)} contains a NUL, which PostgreSQL does not allow in text. Use another name.`,
      'resource',
    );
  }
  const stored = await DIALECTS[dialect].raise(run, resource, token).catch((error: unknown) => {
    throw findInError(error, MISSING_TABLE) ? missingTable(dialect, error) : error;
  });
  if (stored > token) {
    throw new StaleFencingTokenError(resource, token, stored, 'Roll the transaction back');
  }
}

/** @see the JSDoc of `fence` */
export function fenceSchema(dialect: FenceDialect): string {
  DIALECT.check('dialect', dialect);
  return `${DIALECTS[dialect].schema};\n`;
}

function isLease(holder: unknown): holder is Lease {
  return typeof (holder as Partial<Lease> | null)?.assertHeld === 'function';
}

function checkHolder(holder: FencedHolder): FencedHolder {
  HOLDER.check('fence.guard', holder);
  return holder;
}

function holderOf(lease: Lease): FencedHolder {
  const { resources } = lease;
  const [first = ''] = resources;
  if (resources.length > 1) {
    const name = JSON.stringify(first);
    throw new InvalidLockOptionsError(
      `fence.guard takes one resource, and this lease holds ${resources.length}, each with its own token. Call it once ` +
        `for each resource that the transaction writes, in the order of lease.resources. Instead of the lease, pass ` +
        `{ resource: ${name}, token: lease.fencingTokenOf(${name}) }.`,
      'lease',
    );
  }
  checkExcludes(lease);
  lease.assertHeld();
  return { resource: first, token: lease.fencingToken };
}

/** Tokens of holders beside each other do not show which of them is stale. */
export function checkExcludes({ resources, mode }: Lease): void {
  if (!isSharedMode(mode)) return;
  throw new InvalidLockOptionsError(
    `fence.guard needs a lease that excludes all others. The lease of ${quote(resources[0]!)} has the mode ${mode}: ` +
      'others hold it at the same time, with larger tokens. Use the mode write or exclusive.',
    'lease',
  );
}

/** PostgreSQL, MySQL, SQLite. The statement names no other table. */
const MISSING_TABLE = new RegExp(`^(42P01|1146|ER_NO_SUCH_TABLE)$|no such table: (main\\.)?${TABLE}`);

function missingTable(dialect: FenceDialect, cause: unknown): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `The table ${TABLE} of fence.guard does not exist. Add this to your migrations; fence.schema('${dialect}') returns ` +
      `it:\n${fenceSchema(dialect)}`,
    'tx',
    { cause },
  );
}
