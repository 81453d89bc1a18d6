import { type ArgumentsHost, Catch, type ExceptionFilter, HttpStatus } from '@nestjs/common';
import { LeaseLostError, LockBusyError, LockError, LockShutdownError } from '../core/errors.js';
import { LockTimeoutError, LockUnavailableError } from '../core/errors.js';

/** 423 Locked is not in Nest's HttpStatus of every version. */
const LOCKED = 423;

/** What is left of a lease says when a dead holder is gone; a live one is mostly done much earlier. */
const LONGEST_RETRY_AFTER_MS = 5_000;

/** What both Express and Fastify have. */
interface Reply {
  status(code: number): Reply;
  header(name: string, value: string): Reply;
  send(body: unknown): unknown;
  headersSent?: boolean;
  raw?: { headersSent: boolean; end(): unknown };
  end?(): unknown;
}

/** How an error is told to an HTTP client: nothing of our insides, such as host names or resources. */
interface Verdict {
  readonly status: number;
  readonly error: string;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/**
 * Answers a lock error over HTTP: 423 Locked when the resource is not free, 503 when locks cannot be had at all, both with
 * Retry-After. Elsewhere than HTTP the error passes through.
 *
 * ```ts
 * app.useGlobalFilters(new LockExceptionFilter());
 * ```
 */
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter<LockError> {
  catch(exception: LockError, host: ArgumentsHost): void {
    if (host.getType() !== 'http') throw exception;
    const reply = host.switchToHttp().getResponse<Reply>();
    // A stream that has begun cannot change its status any more.
    if (reply.headersSent ?? reply.raw?.headersSent) return void (reply.raw ?? reply).end?.();
    const { status, error, message, retryAfterMs } = judge(exception);
    if (retryAfterMs !== undefined) {
      reply.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
    }
    reply.status(status).header('Content-Type', 'application/json; charset=utf-8');
    reply.send({ statusCode: status, error, message, code: exception.code });
  }
}

function judge(exception: LockError): Verdict {
  if (exception instanceof LockBusyError || exception instanceof LockTimeoutError) {
    const message = 'Another request is working on this. Try again later.';
    return {
      status: LOCKED,
      error: 'Locked',
      message,
      retryAfterMs: Math.min(exception.retryAfterMs, LONGEST_RETRY_AFTER_MS),
    };
  }
  if (
    exception instanceof LockUnavailableError ||
    exception instanceof LockShutdownError ||
    exception instanceof LeaseLostError
  ) {
    const message = 'This cannot be done safely right now. Try again later.';
    return { status: HttpStatus.SERVICE_UNAVAILABLE, error: 'Service Unavailable', message, retryAfterMs: 1000 };
  }
  return { status: HttpStatus.INTERNAL_SERVER_ERROR, error: 'Internal Server Error', message: 'Internal server error' };
}
