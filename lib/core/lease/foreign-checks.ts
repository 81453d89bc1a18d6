import { InvalidLockOptionsError, quoteResource } from '../api/errors.js';
import { type ForeignLock, isForeignMode } from '../api/foreign-lock.js';
import { LockReentryError } from '../api/lease-errors.js';
import type { LockDefaults } from '../api/lock-options.js';
import { type AlsoLock, alsoLockOf } from '../holding/foreign-locks.js';
import type { Hold } from '../holding/hold.js';
import type { LockContext } from '../holding/lock-context.js';
import { quote } from '../util/quoted.js';
import type { LeaseTransfer } from './transfer-text.js';

/** @throws InvalidLockOptionsError if a lease that is used again was acquired without the lock of the other library */
export function checkHasForeign(hold: Hold, also: AlsoLock): void {
  if (hasForeign(hold, also)) return;
  throw new InvalidLockOptionsError(
    `${quoteResource(hold.owner.resource)} is held already, by this async context or by its database transaction, without ` +
      `the lock of ${also.lock.library} that this call wants too. Pass the same alsoLock to the call that acquires it first.`,
    'alsoLock',
  );
}

/**
 * @param transaction the one of the call, which keeps leases until it ends
 * @throws LockReentryError if the call would wait for the foreign lock of a lease that its async context holds
 */
export function checkIsNotOwn(
  resource: string,
  also: AlsoLock,
  context: LockContext,
  transaction?: Pick<LockContext, 'find'>,
): void {
  const isSame = (hold: Hold): boolean => hasForeign(hold, also);
  const own = context.find(isSame) ?? transaction?.find(isSame);
  if (!own) return;
  const name = `${quote(also.key)} of ${also.lock.library}`;
  throw LockReentryError.waitingForOwnForeign(resource, own.owner.resource, name);
}

function hasForeign({ foreign }: Hold, { lock, key }: AlsoLock): boolean {
  return foreign?.lock === lock && foreign.key === key;
}

/** @throws InvalidLockOptionsError if a call for several resources would wait for the foreign lock of one of them */
export function checkForeignKeys(names: readonly string[], lock: ForeignLock): void {
  const keys = new Map<string, string>();
  for (const name of names) {
    const key = lock.keyOf(name);
    if (key === undefined) continue;
    const other = keys.get(key);
    if (other !== undefined) {
      throw new InvalidLockOptionsError(
        `One call cannot lock ${quoteResource(other)} and ${quoteResource(name)}: for both, alsoLock takes the lock ` +
          `${quote(key)} of ${lock.library}, which has one holder. Until all old processes are gone, lock ` +
          'one resource that stands for both.',
        'alsoLock',
      );
    }
    keys.set(key, name);
  }
}

/** @throws InvalidLockOptionsError if the lease would be held without the lock of the other library */
export function checkMayAdopt({ resource, mode }: LeaseTransfer, { alsoLock }: LockDefaults): void {
  if (alsoLock === undefined || !isForeignMode(mode) || alsoLockOf(alsoLock, resource) === undefined) return;
  throw new InvalidLockOptionsError(
    `${quoteResource(resource)} cannot be adopted while the module takes the lock of ${alsoLock.library} too (alsoLock): ` +
      'that lock is not transferred. Let the job acquire the lock itself, or let the key function of alsoLock return ' +
      'undefined for this resource.',
    'alsoLock',
  );
}
