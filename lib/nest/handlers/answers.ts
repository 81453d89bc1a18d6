import { HttpStatus } from '@nestjs/common';
import {
  InvalidResourceError,
  LockAbortedError,
  LockError,
  LockShutdownError,
  LockUnavailableError,
} from '../../kernel/api/errors.js';
import { JobNotFoundError } from '../../features/jobs/core/job-info.js';
import { LeaseLostError, NotLeaderError } from '../../kernel/api/lease-errors.js';
import { StaleFencingTokenError } from '../../features/fence/core/fence-errors.js';
import { LockBusyError, LockQueueFullError } from '../../kernel/api/busy-errors.js';

/** The work may have been done in part, or was not done. */
const INTERRUPTIONS = [LeaseLostError, StaleFencingTokenError, NotLeaderError];

/** 423 Locked. Not every version of Nest has it in HttpStatus. */
const LOCKED = 423;

/**
 * The status codes of gRPC, because this package does not depend on it. ABORTED, "typically due to a concurrency
 * issue", if another attempt of the whole work may succeed. UNAVAILABLE for work that has not begun.
 */
const GRPC = { INVALID_ARGUMENT: 3, NOT_FOUND: 5, ABORTED: 10, INTERNAL: 13, UNAVAILABLE: 14 } as const;

/** Shorter than the rest of a lease, which only a dead holder keeps. A living one is usually done much earlier. */
export const MAX_RETRY_AFTER_MS = 5_000;

/**
 * The answer to the client. It shows nothing internal, such as host names or resources. Operators get more: they ask
 * for a job by its name, and the error lists the existing names and instances.
 */
export interface ErrorAnswer {
  readonly status: number;
  readonly grpcStatus: number;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/**
 * Returns the lock error behind an error: itself, or the cause of an `AbortError`. Functions of Node throw one when the
 * signal of a lease aborts.
 */
export function lockErrorOf(error: unknown): LockError | undefined {
  const { name, cause } = Object(error) as Partial<Error>;
  const found = name === 'AbortError' ? cause : error;
  return found instanceof LockError ? found : undefined;
}

/** The errors of {@link lockErrorOf}, for `@Catch` of Nest, which compares by `instanceof`. */
export abstract class LockErrorOrAbort extends Error {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return lockErrorOf(error) !== undefined;
  }
}

/** Returns the answer to the client. @param maxRetryAfterMs the longest delay before a retry */
export function answerTo(exception: LockError, maxRetryAfterMs = MAX_RETRY_AFTER_MS): ErrorAnswer {
  const isOverloaded = exception instanceof LockQueueFullError;
  if (exception instanceof LockBusyError && !isOverloaded) {
    const message = 'Another request is working on this. Try again later.';
    const retryAfterMs = Math.min(exception.retryAfterMs, maxRetryAfterMs);
    return { status: LOCKED, grpcStatus: GRPC.ABORTED, message, retryAfterMs };
  }
  const hasNotBegun =
    isOverloaded || exception instanceof LockUnavailableError || exception instanceof LockShutdownError;
  if (hasNotBegun || INTERRUPTIONS.some((kind) => exception instanceof kind)) {
    const message =
      exception instanceof LeaseLostError
        ? 'This request was interrupted, but may have been completed. Check before you try again.'
        : 'This cannot be done safely right now. Try again later.';
    const grpcStatus = hasNotBegun ? GRPC.UNAVAILABLE : GRPC.ABORTED;
    return { status: HttpStatus.SERVICE_UNAVAILABLE, grpcStatus, message, retryAfterMs: 1000 };
  }
  if (exception instanceof LockAbortedError && exception.reason === 'superseded') {
    return { status: HttpStatus.CONFLICT, grpcStatus: GRPC.ABORTED, message: 'A newer request replaces this one.' };
  }
  if (exception instanceof InvalidResourceError) {
    const message =
      'A value in this request cannot name a lock: it is empty, too long, reserved, or not well-formed text.';
    return { status: HttpStatus.BAD_REQUEST, grpcStatus: GRPC.INVALID_ARGUMENT, message };
  }
  if (exception instanceof JobNotFoundError) {
    const isElsewhere = exception.instances.length > 0;
    const message = isElsewhere ? 'This instance has no code for the job.' : exception.message;
    return { status: HttpStatus.NOT_FOUND, grpcStatus: GRPC.NOT_FOUND, message };
  }
  return { status: HttpStatus.INTERNAL_SERVER_ERROR, grpcStatus: GRPC.INTERNAL, message: 'Internal server error' };
}

/** Returns the hint for a retry, in the client's units. */
export function retryOf({ retryAfterMs }: ErrorAnswer): { retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs: Math.ceil(retryAfterMs) };
}

/**
 * Returns the error for a GraphQL server. Such servers take `extensions` from any error, so the package needs no class
 * from them.
 */
export function graphqlError(cause: LockError, answer = answerTo(cause)): Error {
  const error = new Error(answer.message, { cause });
  // Apollo may show the stack to the client, where our frames are of no use.
  error.stack = `${error.name}: ${answer.message}`;
  return Object.assign(error, { extensions: { code: cause.code, status: answer.status, ...retryOf(answer) } });
}
