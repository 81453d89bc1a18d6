import { InvalidLockOptionsError } from '../api/errors.js';
import { decodeLabel } from '../api/holder.js';
import { LOCK_MODES, type LockMode, MAX_LEASE_MS, MIN_LEASE_MS, type PermitRequest } from '../api/lock-options.js';
import type { LockOwner } from '../store/lock-store.js';
import { checkResource } from '../api/resource.js';

/** A lease on its way from one process to another. */
export interface LeaseTransfer extends LockOwner {
  readonly fencingToken: number;
  /** How long the lease was in the process that transferred it. */
  readonly leaseMs: number;
  /** How long the resource stays taken at least, from the grant. */
  readonly minHoldMs: number;
}

/** What an encoded lease begins with; the number changes with what follows. */
const FORMAT = 'lease1.';

/** The leases as one text without spaces. Any process that has the text can adopt them. */
export function encodeLeases(leases: readonly LeaseTransfer[]): string {
  const fields = leases.map(({ resource, id: owner, mode, permits, fencingToken, leaseMs, minHoldMs, label }) => {
    const lease = [resource, owner, mode, fencingToken, leaseMs];
    const whole = [...lease, permits?.count ?? 0, permits?.total ?? 0, minHoldMs];
    if (label !== undefined) return [...whole, label];
    if (minHoldMs > 0) return whole;
    return permits ? [...lease, permits.count, permits.total] : lease;
  });
  return FORMAT + Buffer.from(JSON.stringify(fields)).toString('base64url');
}

/** @throws InvalidLockOptionsError that does not show the text, because even a damaged text may be a secret */
export function decodeLeases(text: unknown): LeaseTransfer[] {
  if (typeof text === 'string' && text.startsWith(FORMAT)) {
    try {
      const fields: unknown = JSON.parse(Buffer.from(text.slice(FORMAT.length), 'base64url').toString());
      if (Array.isArray(fields) && fields.length > 0) return fields.map(readLease);
    } catch {
      // Reported below.
    }
  }
  throw new InvalidLockOptionsError(
    'The text to adopt is not one that transfer() returned. Pass it whole and unchanged.',
    'text',
  );
}

function readLease(fields: unknown): LeaseTransfer {
  const [resource, owner, mode, fencingToken, leaseMs, count, total, minHoldMs = 0, label] = fields as unknown[];
  const isRight =
    typeof owner === 'string' &&
    /^\S+\/\S+$/.test(owner) &&
    LOCK_MODES.includes(mode as LockMode) &&
    isBetween(fencingToken, 1, Number.MAX_SAFE_INTEGER) &&
    isBetween(leaseMs, MIN_LEASE_MS, MAX_LEASE_MS) &&
    isBetween(minHoldMs, 0, MAX_LEASE_MS) &&
    (label === undefined || (typeof label === 'string' && decodeLabel(label) !== undefined)) &&
    (mode !== 'semaphore' ||
      (isBetween(count, 1, Number.MAX_SAFE_INTEGER) && isBetween(total, 1, Number.MAX_SAFE_INTEGER)));
  if (!isRight) throw new TypeError('not a lease');
  const permits: PermitRequest | undefined =
    mode === 'semaphore' ? { count: count as number, total: total as number, isResized: false } : undefined;
  return {
    resource: checkResource(resource, 'adopt'),
    id: owner,
    mode: mode as LockMode,
    permits,
    fencingToken: fencingToken as number,
    leaseMs: leaseMs as number,
    minHoldMs: minHoldMs as number,
    ...(label !== undefined && { label: label as string }),
  };
}

function isBetween(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}
