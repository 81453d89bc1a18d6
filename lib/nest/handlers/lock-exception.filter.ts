import { STATUS_CODES } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpStatus, Logger, Optional } from '@nestjs/common';
import { type Observable, of, throwError } from 'rxjs';
import { LockError, LockUnavailableError } from '../../kernel/api/errors.js';
import { Option, type OptionsOf, OptionTable } from '../../kernel/api/validation.js';
import { SYSTEM_CLOCK } from '../../kernel/util/clock.js';
import { count } from '../../kernel/util/plurals.js';
import { isLogged } from '../log/outage-log.js';
import { RepeatedLines } from '../log/repeated-lines.js';
import {
  LockErrorOrAbort,
  type ErrorAnswer,
  answerTo,
  graphqlError,
  lockErrorOf,
  MAX_RETRY_AFTER_MS,
  retryOf,
} from './answers.js';
import { answersItself, grpcCallOf, type GrpcCall, metadataFor } from './client-disconnect.js';

/** The part of a response that Express and Fastify share. */
interface HttpReply {
  status(code: number): HttpReply;
  header(name: string, value: string): HttpReply;
  send(body: unknown): unknown;
  headersSent?: boolean;
  raw?: { headersSent: boolean; end(): unknown };
  end?(): unknown;
}

/** A WebSocket client: of Socket.IO, or of `ws`, which alone has a `readyState`. */
interface GatewayClient {
  emit?(event: string, data: unknown): unknown;
  send?(message: string): unknown;
  readonly readyState?: number;
}

/** Options of {@link LockExceptionFilter}. */
export interface LockExceptionFilterOptions {
  /**
   * The upper limit for `Retry-After` and `retryAfterMs` in the response for a busy resource. They are
   * what is left of the holder's lease, but a live holder usually finishes earlier. Raise it if work under the lock
   * takes a long time.
   *
   * @allowed 1 s to 24 h
   * @default 5000
   */
  maxRetryAfterMs?: number;
}

export const LOCK_EXCEPTION_FILTER_OPTIONS = new OptionTable({
  maxRetryAfterMs: Option.milliseconds(1_000, 24 * 60 * 60 * 1_000).default(MAX_RETRY_AFTER_MS),
} satisfies OptionsOf<LockExceptionFilterOptions>);

/**
 * Turns lock errors into responses, even a lock error that is the `cause` of an `AbortError`, which Node's own
 * functions throw when a lease's signal aborts.
 *
 * - 423 Locked, with Retry-After, if the resource is not free
 * - 503 Service Unavailable, with Retry-After, if no lock can be acquired safely, for example because Redis is down
 * - 409 Conflict if a newer call with `onBusy: 'cancelHolder'` replaces this one
 * - 400 Bad Request if a value in the request gives an invalid resource name
 * - 404 Not Found, with the text of the error, if an operator names a job that does not exist
 * - 500 Internal Server Error for bugs and deployment mistakes, which are logged
 *
 * Clients of microservices, gRPC, WebSockets and GraphQL receive the message, the code and the retry time in their own
 * format. Nest runs no global filters for gateways, so put this filter in `@UseFilters` there. In other contexts, the
 * error is rethrown.
 *
 * ```ts
 * app.useGlobalFilters(new LockExceptionFilter({ maxRetryAfterMs: 30_000 }));
 * ```
 *
 * @see docs/guide/request-handlers.md#the-response-when-a-resource-is-busy
 */
@Catch(LockErrorOrAbort)
export class LockExceptionFilter implements ExceptionFilter<Error> {
  readonly #logger = new Logger('LockExceptionFilter');
  /** Repeated lines are counted, because every request fails while Redis is down. */
  readonly #unavailable = new RepeatedLines(SYSTEM_CLOCK, (line) => this.#logger.warn(line));
  readonly #maxRetryAfterMs: number;

  /** @throws InvalidLockOptionsError if an option is invalid */
  constructor(@Optional() options: LockExceptionFilterOptions = {}) {
    LOCK_EXCEPTION_FILTER_OPTIONS.check('LockExceptionFilter', options);
    this.#maxRetryAfterMs = options.maxRetryAfterMs ?? MAX_RETRY_AFTER_MS;
  }

  catch(error: Error, host: ArgumentsHost): void | Observable<void> {
    const type = host.getType<string>();
    const exception = lockErrorOf(error);
    if (!exception || (type !== 'http' && type !== 'rpc' && type !== 'ws' && type !== 'graphql')) throw error;
    const answer = answerTo(exception, this.#maxRetryAfterMs);
    this.#log(exception, answer, type);
    if (type === 'http') return answerHttp(host.switchToHttp().getResponse<HttpReply>(), exception, answer);
    // Nest passes on what a filter throws here, and a GraphQL server answers with it.
    if (type === 'graphql') throw graphqlError(exception, answer);
    const data = { status: 'error', message: answer.message, code: exception.code, ...retryOf(answer) };
    if (type === 'ws') return answerWs(host, data);
    const call = grpcCallOf(host);
    if (call) return answerGrpc(host, call, exception, answer);
    // An error thrown by a filter would not reach the caller, which would wait forever.
    return throwError(() => data);
  }

  /** Logs problems that the operator must fix. The answer to the client does not show them. */
  #log(exception: LockError, { status }: ErrorAnswer, type: 'http' | 'rpc' | 'ws' | 'graphql'): void {
    const { message, stack, resource } = exception;
    const lostEvent =
      type === 'rpc' ? ' If it was a message, its sender gets this error. If it was an event, it is lost.' : '';
    if (status === HttpStatus.INTERNAL_SERVER_ERROR) this.#logger.error(message, stack);
    else if (type !== 'rpc' && isLogged(exception)) return;
    else if (exception instanceof LockUnavailableError) {
      const why = exception.cause instanceof Error ? exception.cause.message : message;
      this.#unavailable.add(`${type} ${why}`, resource, `${message}.${lostEvent}`, (lines, names) => {
        return `In the last minute, ${count(lines, 'more request')} failed (${why}): ${names}.${lostEvent}`;
      });
    }
    // Nest does not show a filter whether it was a message or an event.
    else if (type === 'rpc') this.#logger.warn(`${message}${lostEvent}`);
  }
}

function answerHttp(reply: HttpReply, { code }: LockError, { status, message, retryAfterMs }: ErrorAnswer): void {
  // Once a stream has begun, its status cannot change.
  if (reply.headersSent ?? reply.raw?.headersSent) return void (reply.raw ?? reply).end?.();
  if (retryAfterMs !== undefined) {
    reply.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterMs / 1000))));
  }
  reply.status(status).header('Content-Type', 'application/json; charset=utf-8');
  reply.send({ statusCode: status, error: STATUS_CODES[status], message, code });
}

/**
 * Sends the event that Nest sends for an error, with the message that failed as its `cause`. Acknowledges the message
 * too, if the client asked for it: otherwise the client would wait forever.
 */
function answerWs(host: ArgumentsHost, answer: object): void {
  const ws = host.switchToWs();
  const client = ws.getClient<GatewayClient>();
  const data = { ...answer, cause: { pattern: ws.getPattern(), data: ws.getData<unknown>() } };
  if (client.readyState !== undefined) return void client.send?.(JSON.stringify({ event: 'exception', data }));
  client.emit?.('exception', data);
  // Socket.IO's third argument. A second acknowledgement of the same message has no effect.
  const acknowledge = host.getArgByIndex<unknown>(2);
  if (typeof acknowledge === 'function') acknowledge(answer);
}

/** Answers with a status of gRPC. Clients with a retry policy for this status wait for the time in the metadata. */
function answerGrpc(host: ArgumentsHost, call: GrpcCall, { code }: LockError, answer: ErrorAnswer): Observable<void> {
  const { grpcStatus, message } = answer;
  const { retryAfterMs } = retryOf(answer);
  const metadata = metadataFor(call, {
    'lock-error-code': code,
    'grpc-retry-pushback-ms': retryAfterMs?.toString(),
  });
  const error = { code: grpcStatus, message, details: message, metadata };
  if (!answersItself(host, call)) return throwError(() => error);
  // Nest does not pass the error on to the client, and its promise would reject unhandled.
  const respond = host.getArgByIndex<unknown>(1);
  if (typeof respond === 'function') respond(error);
  else call.emit('error', error);
  return of(undefined);
}
