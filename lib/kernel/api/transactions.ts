/**
 * Gives a lock service the database transaction of the running async context, for the module option `transactions`.
 * `typeormTransactional` and `TransactionScope` provide it.
 */
export interface TransactionHooks {
  /**
   * Returns the open transaction of the running async context. All calls within one transaction return the same object.
   *
   * @returns `undefined` outside of a transaction, and after it has ended
   */
  current(): object | undefined;
  /**
   * Calls the callback once the transaction has ended: after the commit or the rollback, even if that failed. The lock
   * service calls this method in the async context of the transaction.
   */
  runOnEnd(transaction: object, callback: () => Promise<void>): void;
}
