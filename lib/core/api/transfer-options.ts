import { MAX_LEASE_MS, MIN_LEASE_MS } from './lock-options.js';
import { checkInteger, checkKnownOptions } from './validation.js';

/** What `lease.transfer()` takes. */
export interface TransferOptions {
  /**
   * How long the lease waits to be adopted. Then it ends.
   *
   * @allowed 50 ms to 24 h
   * @default the lease's own
   */
  leaseMs?: number;
}

/** How long the lease waits to be adopted. @throws InvalidLockOptionsError */
export function readTransferOptions(options: TransferOptions, leaseMs: number): number {
  checkKnownOptions('transfer', options, ['leaseMs']);
  checkInteger('leaseMs', options.leaseMs, MIN_LEASE_MS, MAX_LEASE_MS);
  return options.leaseMs ?? leaseMs;
}
