import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { type LeaseLimit, type LockDefaults, MAX_LEASE_MS, MIN_LEASE_MS } from '../../core/api/lock-options.js';
import { checkInteger } from '../../core/api/validation.js';

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function resolveQuarantine(restartQuarantineMs: number | undefined, { leaseMs }: LockDefaults): LeaseLimit {
  if (restartQuarantineMs === undefined || restartQuarantineMs === 0) return {};
  checkInteger('restartQuarantineMs', restartQuarantineMs, MIN_LEASE_MS, MAX_LEASE_MS);
  if (restartQuarantineMs >= leaseMs) return { restartQuarantineMs };
  throw new InvalidLockOptionsError(
    `restartQuarantineMs must be the longest lease that anybody takes, so at least leaseMs (${leaseMs}), not ${restartQuarantineMs}.`,
    'restartQuarantineMs',
  );
}
