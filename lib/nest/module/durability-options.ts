import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { LockDefaults } from '../../core/api/lock-options.js';
import { checkInteger, checkKnownOptions } from '../../core/api/validation.js';
import type { Durability } from '../../redis/durability/durability.js';

const MOST_REPLICAS = 5;
const LONGEST_TIMEOUT_MS = 10_000;
const DEFAULT_TIMEOUT_MS = 50;

/** @throws InvalidLockOptionsError that names the option, the value and what is allowed */
export function resolveDurability(
  durability: { replicas: number; timeoutMs?: number } | undefined,
  { leaseMs, attemptTimeoutMs }: LockDefaults,
): Durability | undefined {
  if (durability === undefined) return undefined;
  checkKnownOptions('durability', durability, ['replicas', 'timeoutMs']);
  const { replicas, timeoutMs = DEFAULT_TIMEOUT_MS } = durability;
  // Not undefined, which passes for an option that was left out.
  checkInteger('durability.replicas', replicas ?? null, 1, MOST_REPLICAS, 'replicas');
  checkInteger('durability.timeoutMs', timeoutMs, 1, LONGEST_TIMEOUT_MS);
  checkBelow(timeoutMs, attemptTimeoutMs, `attemptTimeoutMs (${attemptTimeoutMs})`, 'no attempt would see its end');
  checkBelow(
    timeoutMs,
    leaseMs / 3,
    `a third of leaseMs (${leaseMs})`,
    'a lease is renewed then, and has to be confirmed in time',
  );
  return { replicas, timeoutMs };
}

function checkBelow(timeoutMs: number, limitMs: number, limit: string, why: string): void {
  if (timeoutMs < limitMs) return;
  throw new InvalidLockOptionsError(
    `durability.timeoutMs must be less than ${limit}, not ${timeoutMs}: ${why}.`,
    'durability.timeoutMs',
  );
}
