import { type ArgumentsHost, Catch, type ExceptionFilter, HttpStatus, Logger } from '@nestjs/common';
import { type Observable, throwError } from 'rxjs';
import {
  InvalidResourceError,
  LockBusyError,
  LockError,
  LockQueueFullError,
  LockShutdownError,
  LockTimeoutError,
  LockUnavailableError,
} from '../../core/api/errors.js';
import { StaleFencingTokenError, NotLeaderError, LeaseLostError } from '../../core/api/lease-errors.js';

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

/** A WebSocket client: of Socket.IO, or of `ws`, which has a state. */
interface Client {
  emit?(event: string, data: unknown): unknown;
  send?(message: string): unknown;
  readonly readyState?: number;
}

/** How an error is told to a client: nothing of our insides, such as host names or resources. */
interface Verdict {
  readonly status: number;
  readonly error: string;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/**
 * Answers a lock error over HTTP: 423 Locked when the resource is not free, 503 when locks cannot be had at all, both with
 * Retry-After; 400 when the name of a resource cannot be one, because of what the client sent. Mistakes of the program or of a deployment are 500, and logged: a `LockModeMismatchError` too, because trying
 * again does not help as long as two versions state different things. Microservices and WebSockets get the same message and code in the form Nest uses there; elsewhere, such as
 * in GraphQL, the error passes through. In a microservice every error is logged: an event has nobody who is told of it.
 *
 * ```ts
 * app.useGlobalFilters(new LockExceptionFilter());
 * ```
 */
@Catch(LockError)
export class LockExceptionFilter implements ExceptionFilter<LockError> {
  readonly #logger = new Logger('LockExceptionFilter');

  catch(exception: LockError, host: ArgumentsHost): void | Observable<never> {
    const type = host.getType<string>();
    if (type !== 'http' && type !== 'rpc' && type !== 'ws') throw exception;
    const verdict = judge(exception);
    this.#log(exception, verdict, type);
    if (type === 'http') return answerHttp(host.switchToHttp().getResponse<Reply>(), exception, verdict);
    // Thrown out of a filter it would reach nobody, and the caller would wait for ever.
    const data = { status: 'error', message: verdict.message, code: exception.code };
    if (type === 'rpc') return throwError(() => data);
    const client = host.switchToWs().getClient<Client>();
    if (client.readyState === undefined) client.emit?.('exception', data);
    else client.send?.(JSON.stringify({ event: 'exception', data }));
  }

  /** What is no one's normal day. The answer to the client does not say it. */
  #log(exception: LockError, { status }: Verdict, type: 'http' | 'rpc' | 'ws'): void {
    const { message, stack } = exception;
    if (status === HttpStatus.INTERNAL_SERVER_ERROR) this.#logger.error(message, stack);
    // Nest does not say which of the two it was.
    else if (type === 'rpc') this.#logger.warn(`${message} The caller of a message is told. An event is lost by this.`);
    else if (exception instanceof LockUnavailableError) this.#logger.warn(message);
  }
}

function answerHttp(reply: Reply, { code }: LockError, { status, error, message, retryAfterMs }: Verdict): void {
  // A stream that has begun cannot change its status any more.
  if (reply.headersSent ?? reply.raw?.headersSent) return void (reply.raw ?? reply).end?.();
  if (retryAfterMs !== undefined) {
    reply.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  }
  reply.status(status).header('Content-Type', 'application/json; charset=utf-8');
  reply.send({ statusCode: status, error, message, code });
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
    exception instanceof LockQueueFullError ||
    exception instanceof LockShutdownError ||
    exception instanceof LeaseLostError ||
    exception instanceof StaleFencingTokenError ||
    exception instanceof NotLeaderError
  ) {
    const message = 'This cannot be done safely right now. Try again later.';
    return { status: HttpStatus.SERVICE_UNAVAILABLE, error: 'Service Unavailable', message, retryAfterMs: 1000 };
  }
  if (exception instanceof InvalidResourceError) {
    const message =
      'A value in this request cannot name a lock: it is empty, too long, reserved, or no well-formed text.';
    return { status: HttpStatus.BAD_REQUEST, error: 'Bad Request', message };
  }
  return { status: HttpStatus.INTERNAL_SERVER_ERROR, error: 'Internal Server Error', message: 'Internal server error' };
}
