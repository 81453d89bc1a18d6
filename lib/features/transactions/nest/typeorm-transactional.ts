import type { TransactionHooks } from '../../../kernel/api/transactions.js';
import { Option, type OptionsOf, OptionTable, wrongValue } from '../../../kernel/api/validation.js';

/** The functions of `typeorm-transactional` that {@link typeormTransactional} needs. */
export interface TypeormTransactionalOptions {
  /**
   * Calls the callback when a transaction has ended.
   *
   * @allowed a function
   */
  runOnTransactionComplete: (callback: () => void) => void;
  /**
   * Returns the data source with this name.
   *
   * @allowed a function
   */
  getDataSourceByName: (name: string) => TransactionalDataSource | undefined;
  /**
   * The names of the data sources. If their transactions are nested, a lease may end with the inner one.
   *
   * @allowed an array of names
   * @default ['default']
   */
  dataSources?: readonly string[];
}

/** The part of a TypeORM data source that the lock service reads. */
export interface TransactionalDataSource {
  readonly manager: { readonly queryRunner?: { readonly isTransactionActive: boolean } | undefined };
}

export const TYPEORM_TRANSACTIONAL_OPTIONS = new OptionTable({
  runOnTransactionComplete: Option.callback<TypeormTransactionalOptions['runOnTransactionComplete']>().required(),
  getDataSourceByName: Option.callback<TypeormTransactionalOptions['getDataSourceByName']>().required(),
  dataSources: Option.checked<readonly string[]>(checkNames).default(['default']),
} satisfies OptionsOf<TypeormTransactionalOptions>);

/**
 * Returns a value for the module option `transactions`, for `typeorm-transactional`. A lock that is acquired inside one
 * of its transactions is released after the commit or the rollback.
 *
 * ```ts
 * import { getDataSourceByName, runOnTransactionComplete } from 'typeorm-transactional';
 * RedisLockModule.forRoot({ transactions: typeormTransactional({ getDataSourceByName, runOnTransactionComplete }) });
 * ```
 *
 * @throws InvalidLockOptionsError if an option is invalid
 */
export function typeormTransactional(options: TypeormTransactionalOptions): TransactionHooks {
  TYPEORM_TRANSACTIONAL_OPTIONS.check('typeormTransactional', options);
  const { runOnTransactionComplete, getDataSourceByName, dataSources } = TYPEORM_TRANSACTIONAL_OPTIONS.filled(options);
  // TypeORM has one query runner for all transactions on SQLite. So each transaction has an object of its own here.
  const open = new WeakMap<object, TypeormTransaction>();
  return {
    current() {
      for (const name of dataSources) {
        // In a transaction, the manager belongs to it.
        const runner = getDataSourceByName(name)?.manager.queryRunner;
        if (!runner?.isTransactionActive) continue;
        const transaction = open.get(runner) ?? { runner };
        open.set(runner, transaction);
        return transaction;
      }
      return undefined;
    },
    runOnEnd(transaction, callback) {
      runOnTransactionComplete(() => {
        open.delete((transaction as TypeormTransaction).runner);
        void callback();
      });
    },
  };
}

interface TypeormTransaction {
  readonly runner: object;
}

function checkNames(option: string, names: unknown): void {
  const isList = Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === 'string');
  if (isList) return;
  throw wrongValue(option, 'an array with the names of data sources', names);
}
