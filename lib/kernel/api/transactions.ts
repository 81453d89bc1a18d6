/**
 * Gives a lock service the database transaction of the running async context: the module option `transactions`.
 * `typeormTransactional` and `TransactionScope` implement it.
 */
export interface TransactionHooks {
  /**
   * The open transaction of the running async context. Every call in one transaction returns the same object.
   *
   * @returns `undefined` outside of a transaction, and after it has ended
   */
  current(): object | undefined;
  /**
   * Calls back once, when that transaction has ended: after the commit or the rollback, also if one of them failed.
   * It is called in the async context of the transaction.
   */
  runOnEnd(transaction: object, callback: () => Promise<void>): void;
}
