import type { LockStoreError } from '../../core/store/store-error.js';

/** After a passing error, such as BUSY while a long script runs. */
const PASSING_MS = 250;
/** Where the user may not subscribe. An operator may give it the right. */
const REFUSED_MS = 10_000;

/** How long to wait before the same connection subscribes again. */
export function subscriptionPause({ failure }: LockStoreError): number {
  return failure === 'refused' ? REFUSED_MS : PASSING_MS;
}
