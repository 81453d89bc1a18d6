import { LockStoreError } from '../../../kernel/store/store-error.js';
import { toStoreError } from '../../../redis/script/failures.js';
import type { ExitName } from '../frame/exit-codes.js';

/**
 * `ok`: as it should be. `note`: worth knowing. `warning`: locks work, and may fail or be lost one day. `failed`: no
 * lock can be had, or not every one. `unknown`: Redis does not tell this user.
 */
type FindingStatus = 'ok' | 'note' | 'warning' | 'failed' | 'unknown';

/** What one check of the doctor has found. */
export interface Finding {
  readonly check: string;
  readonly status: FindingStatus;
  /** One sentence. */
  readonly message: string;
  /** What to do. Set where something is to be done. */
  readonly fix?: string;
  /** Which server, where there are several. */
  readonly server?: string;
}

/** How the doctor ends: `refused` where there is a warning, `redis` where locks cannot be had. */
export function exitOf(findings: readonly Finding[]): ExitName {
  const has = (status: FindingStatus): boolean => findings.some((each) => each.status === status);
  if (has('failed')) return 'redis';
  return has('warning') ? 'refused' : 'done';
}

export function ok(check: string, message: string): Finding {
  return { check, status: 'ok', message };
}

export function note(check: string, message: string, fix?: string): Finding {
  return { check, status: 'note', message, ...(fix !== undefined && { fix }) };
}

export function warning(check: string, message: string, fix: string): Finding {
  return { check, status: 'warning', message, fix };
}

export function failing(check: string, message: string, fix: string): Finding {
  return { check, status: 'failed', message, fix };
}

/**
 * @param right what its user needs, so that Redis tells it
 * @param error why it did not, where that may be another reason
 */
export function unknown(check: string, message: string, right: string, error?: unknown): Finding {
  const { failure, message: reason } = error instanceof LockStoreError ? error : toStoreError(error);
  const isAnswer = error === undefined || failure === 'refused';
  const fix = isAnswer ? `To find out, run doctor as a user with ${right}.` : `Redis did not answer: ${reason}`;
  return { check, status: 'unknown', message, fix };
}
