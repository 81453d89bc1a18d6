import type { Finding } from '../../../features/fleet/core/findings/finding.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';
import { toStoreError } from '../../../redis/script/failures.js';
import type { ExitName } from '../frame/exit-codes.js';

/**
 * `note`: worth knowing. `warning`: locks work, but may fail or be lost one day. `failed`: some or all locks are
 * unavailable. `unknown`: Redis refuses to answer this user.
 */
type CheckStatus = 'ok' | 'note' | 'warning' | 'failed' | 'unknown';

/** The result of one check of Redis. */
export interface Check {
  readonly check: string;
  readonly status: CheckStatus;
  /** One sentence. */
  readonly message: string;
  /** The remedy, if one is needed. */
  readonly fix?: string;
  /** Set if there are several servers. */
  readonly server?: string;
}

/** `redis` if locks are unavailable, `refused` if there is a warning. */
export function exitOf(checks: readonly Check[], findings: readonly Finding[]): ExitName {
  const has = (status: CheckStatus): boolean => checks.some((each) => each.status === status);
  if (has('failed') || findings.some(({ kind }) => kind === 'redisDown')) return 'redis';
  return has('warning') || findings.some(({ severity }) => severity !== 'note') ? 'refused' : 'done';
}

export function ok(check: string, message: string): Check {
  return { check, status: 'ok', message };
}

export function note(check: string, message: string, fix?: string): Check {
  return { check, status: 'note', message, ...(fix !== undefined && { fix }) };
}

export function warning(check: string, message: string, fix: string): Check {
  return { check, status: 'warning', message, fix };
}

export function failing(check: string, message: string, fix: string): Check {
  return { check, status: 'failed', message, fix };
}

/**
 * @param right the right that the user lacks
 * @param error the reason, if it may be another one
 */
export function unknown(check: string, message: string, right: string, error?: unknown): Check {
  const { failure, message: reason } = error instanceof LockStoreError ? error : toStoreError(error);
  const isAnswer = error === undefined || failure === 'refused';
  const fix = isAnswer ? `To find out, run doctor as a user with ${right}.` : `Redis did not answer: ${reason}`;
  return { check, status: 'unknown', message, fix };
}
