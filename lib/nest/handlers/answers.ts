import { HttpStatus } from '@nestjs/common';
import {
  InvalidResourceError,
  LockAbortedError,
  LockBusyError,
  LockError,
  LockQueueFullError,
  LockShutdownError,
  LockUnavailableError,
} from '../../kernel/api/errors.js';
import { JobNotFoundError } from '../../features/jobs/core/job-info.js';
import { LeaseLostError, NotLeaderError, StaleFencingTokenError } from '../../kernel/api/lease-errors.js';

/** 423 Locked. Not every version of Nest has it in HttpStatus. */
const LOCKED = 423;

/**
 * The status codes of gRPC, which this package does not depend on. ABORTED, "typically due to a concurrency issue", is
 * for what another attempt of the whole work may achieve. UNAVAILABLE is for work that has not begun.
 */
const GRPC = { INVALID_ARGUMENT: 3, NOT_FOUND: 5, ABORTED: 10, INTERNAL: 13, UNAVAILABLE: 14 } as const;

/** The rest of a lease is the wait for a dead holder. A living holder is usually done much earlier. */
export const MAX_RETRY_AFTER_MS = 5_000;

/**
 * The answer to the client. It shows nothing internal, such as host names or resources, but to operators: a job is asked
 * for by its name, and the error says which names and instances there are.
 */
export interface ErrorAnswer {
  readonly status: number;
  readonly grpcStatus: number;
  readonly error: string;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/**
 * Returns the lock error that an error stands for: itself, or the cause of an `AbortError`. Functions of Node throw one when
 * the signal of a lease aborts.
 */
export function lockErrorOf(error: unknown): LockError | undefined {
  const { name, cause } = Object(error) as Partial<Error>;
  const found = name === 'AbortError' ? cause : error;
  return found instanceof LockError ? found : undefined;
}

/** What {@link lockErrorOf} takes, for `@Catch` of Nest, which compares by `instanceof`. */
export abstract class LockErrorOrAbort extends Error {
  static override [Symbol.hasInstance](error: unknown): boolean {
    return lockErrorOf(error) !== undefined;
  }
}

/** Returns what a client is told of a lock error. @param maxRetryAfterMs after how long at most it may try again */
export function answerTo(exception: LockError, maxRetryAfterMs = MAX_RETRY_AFTER_MS): ErrorAnswer {
  const isOverloaded = exception instanceof LockQueueFullError;
  if (exception instanceof LockBusyError && !isOverloaded) {
    const message = 'Another request is working on this. Try again later.';
    return {
      status: LOCKED,
      grpcStatus: GRPC.ABORTED,
      error: 'Locked',
      message,
      retryAfterMs: Math.min(exception.retryAfterMs, maxRetryAfterMs),
    };
  }
  const hasNotBegun =
    isOverloaded || exception instanceof LockUnavailableError || exception instanceof LockShutdownError;
  if (
    hasNotBegun ||
    exception instanceof LeaseLostError ||
    exception instanceof StaleFencingTokenError ||
    exception instanceof NotLeaderError
  ) {
    const message =
      exception instanceof LeaseLostError
        ? 'This was interrupted, and may have been done all the same. Check before you try again.'
        : 'This cannot be done safely right now. Try again later.';
    return {
      status: HttpStatus.SERVICE_UNAVAILABLE,
      grpcStatus: hasNotBegun ? GRPC.UNAVAILABLE : GRPC.ABORTED,
      error: 'Service Unavailable',
      message,
      retryAfterMs: 1000,
    };
  }
  if (exception instanceof LockAbortedError && exception.reason === 'superseded') {
    const message = 'A newer request replaces this one.';
    return { status: HttpStatus.CONFLICT, grpcStatus: GRPC.ABORTED, error: 'Conflict', message };
  }
  if (exception instanceof InvalidResourceError) {
    const message =
      'A value in this request cannot name a lock: it is empty, too long, reserved, or not well-formed text.';
    return { status: HttpStatus.BAD_REQUEST, grpcStatus: GRPC.INVALID_ARGUMENT, error: 'Bad Request', message };
  }
  if (exception instanceof JobNotFoundError) {
    const { message } = exception;
    return { status: HttpStatus.NOT_FOUND, grpcStatus: GRPC.NOT_FOUND, error: 'Not Found', message };
  }
  return {
    status: HttpStatus.INTERNAL_SERVER_ERROR,
    grpcStatus: GRPC.INTERNAL,
    error: 'Internal Server Error',
    message: 'Internal server error',
  };
}

/** What an answer says of a retry, in the clients' terms. */
export function retryOf({ retryAfterMs }: ErrorAnswer): { retryAfterMs?: number } {
  return retryAfterMs === undefined ? {} : { retryAfterMs: Math.ceil(retryAfterMs) };
}

/**
 * Returns the error that a GraphQL server answers with. Such servers take `extensions` from any error, so the package
 * needs no class of theirs.
 */
export function graphqlError(cause: LockError, answer = answerTo(cause)): Error {
  const error = new Error(answer.message, { cause });
  // Apollo may show the stack to the client. What is ours in it is of no use there.
  error.stack = `${error.name}: ${answer.message}`;
  return Object.assign(error, { extensions: { code: cause.code, status: answer.status, ...retryOf(answer) } });
}
