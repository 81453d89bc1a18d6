import { AsyncLocalStorage } from 'node:async_hooks';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import type { TransactionHooks } from '../../../kernel/api/transactions.js';
import { checkFunction, describeValue } from '../../../kernel/api/validation.js';

interface ScopedTransaction {
  readonly callbacks: (() => Promise<void>)[];
  hasEnded: boolean;
}

/** The part of an adapter of `@nestjs-cls/transactional` that {@link TransactionScope.follow} changes. */
export interface TransactionalAdapterLike {
  optionsFactory: (...args: never[]) => object;
}

/**
 * Releases a lock that is acquired inside a database transaction only after its commit or rollback. Pass a scope as the
 * module option `transactions`, and open each transaction through `run` or `follow`. Works with every library that runs
 * a transaction in a callback, such as Prisma.
 *
 * ```ts
 * export const transactions = new TransactionScope();
 * RedisLockModule.forRoot({ connection, transactions });
 * transactions.run(() => prisma.$transaction(async (tx) => { ... }));
 * new ClsPluginTransactional({ adapter: transactions.follow(new TransactionalAdapterTypeOrm({ ... })) });
 * ```
 */
export class TransactionScope implements TransactionHooks {
  readonly #storage = new AsyncLocalStorage<ScopedTransaction>();

  /**
   * Calls a function that opens a transaction and resolves once the transaction has ended. Inside another `run`, the
   * leases last until the outer `run` ends.
   *
   * @returns the result of the function, once the leases are released
   */
  async run<T>(transaction: () => PromiseLike<T>): Promise<T> {
    checkFunction('transaction', transaction);
    return this.current() ? transaction() : this.#runNew(transaction);
  }

  /**
   * Makes an adapter of `@nestjs-cls/transactional` pass its transactions to this scope. Modifies the adapter.
   *
   * @returns the adapter
   * @throws InvalidLockOptionsError if the argument is not such an adapter
   */
  follow<A extends TransactionalAdapterLike>(adapter: A): A {
    const optionsFactory = (adapter as Partial<TransactionalAdapterLike> | null)?.optionsFactory;
    if (typeof optionsFactory !== 'function') throw noAdapter(adapter);
    adapter.optionsFactory = (...args) => {
      const options = optionsFactory.apply(adapter, args) as {
        wrapWithTransaction?: (...args: unknown[]) => Promise<unknown>;
      };
      const wrapWithTransaction = options.wrapWithTransaction;
      if (typeof wrapWithTransaction !== 'function') throw noAdapter(adapter);
      return {
        ...options,
        // A transaction of its own. A nested one, which is a savepoint, belongs to the outer one.
        wrapWithTransaction: (...rest: unknown[]) => this.#runNew(() => wrapWithTransaction.apply(options, rest)),
      };
    };
    return adapter;
  }

  /** Returns the transaction of the running async context. Called by the lock service. */
  current(): object | undefined {
    const transaction = this.#storage.getStore();
    return transaction?.hasEnded === false ? transaction : undefined;
  }

  /** Called by the lock service. */
  runOnEnd(transaction: object, callback: () => Promise<void>): void {
    (transaction as ScopedTransaction).callbacks.push(callback);
  }

  async #runNew<T>(work: () => PromiseLike<T>): Promise<T> {
    const transaction: ScopedTransaction = { callbacks: [], hasEnded: false };
    try {
      return await this.#storage.run(transaction, work);
    } finally {
      transaction.hasEnded = true;
      for (const callback of transaction.callbacks) await callback();
    }
  }
}

function noAdapter(value: unknown): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `follow() takes an adapter of @nestjs-cls/transactional, with optionsFactory() and wrapWithTransaction(), not ` +
      `${describeValue(value)}. For another library, use run().`,
    'adapter',
  );
}
