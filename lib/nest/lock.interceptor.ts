import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import 'reflect-metadata';
import { Observable, type Subscriber, Subscription } from 'rxjs';
import { LockAbortedError } from '../core/errors.js';
import type { Lease } from '../core/lease.js';
import { onDisconnect } from './client-disconnect.js';
import { isLockedByInterceptor, markHandlerLease } from './handler-leases.js';
import { runLocked } from './lock-call.js';
import type { LockDecoration } from './lock-decoration.js';
import type { RedisLockService } from './redis-lock.service.js';
import { DEFAULT_NAME, getRedisLockToken } from './tokens.js';

/** The metadata key of `@LockHandler`. */
export const LOCK_HANDLER = 'nestjs-redis-lock:handler';

/** Holds the lock that `@LockHandler` names while the handler's stream is subscribed to. */
@Injectable()
export class LockInterceptor implements NestInterceptor {
  readonly #service: RedisLockService;
  /** The lock service it stands for. */
  protected readonly serviceName: string = DEFAULT_NAME;

  constructor(@Inject(getRedisLockToken()) service: RedisLockService) {
    this.#service = service;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const decoration = Reflect.getMetadata(LOCK_HANDLER, context.getHandler()) as
      LockDecoration<[ExecutionContext]> | undefined;
    // Bound to a whole controller or application: the methods without @LockHandler are none of its business.
    if (!decoration || (decoration.lockService ?? DEFAULT_NAME) !== this.serviceName) return next.handle();
    const call = { service: this.#service, decoration, context, next };
    return new Observable((subscriber) => lockStream(call, subscriber));
  }
}

/**
 * The interceptor for a lock service. A class for each, so that Nest injects the service that the controller's own module
 * sees: by token alone, two modules that are not global could be mixed up.
 */
export function lockInterceptorFor(serviceName: string = DEFAULT_NAME): Type<LockInterceptor> {
  if (serviceName === DEFAULT_NAME) return LockInterceptor;

  @Injectable()
  class NamedLockInterceptor extends LockInterceptor {
    protected override readonly serviceName = serviceName;

    constructor(@Inject(getRedisLockToken(serviceName)) service: RedisLockService) {
      super(service);
    }
  }
  return NamedLockInterceptor;
}

/** One call of a handler that is to run under a lock. */
interface HandlerCall {
  readonly service: RedisLockService;
  readonly decoration: LockDecoration<[ExecutionContext]>;
  readonly context: ExecutionContext;
  readonly next: CallHandler;
}

/** Subscribes to the handler under the lock. Gives what ends both. */
function lockStream(call: HandlerCall, subscriber: Subscriber<unknown>): () => void {
  const { service, decoration, context, next } = call;
  const handler = { type: context.getClass(), name: context.getHandler().name };
  const leaving = new AbortController();
  const stream = new Subscription();
  const stopWatching = onDisconnect(context, () => leaving.abort());
  let began = false;

  /** Settles when the handler's stream completes, fails, or is unsubscribed, so that the lease ends before they see it. */
  const subscribe = (lease?: Lease): Promise<void> =>
    new Promise((resolve, reject) => {
      began = true;
      stopWatching();
      stream.add(() => resolve());
      if (stream.closed) return;
      const fail = (error: unknown): void => {
        reject(error);
        stream.unsubscribe();
      };
      if (lease) markHandlerLease(lease, handler, decoration);
      if (lease && decoration.onLost === 'throw') {
        const lost = (): void => fail(lease.signal.reason);
        lease.signal.addEventListener('abort', lost, { once: true });
        stream.add(() => lease.signal.removeEventListener('abort', lost));
      }
      stream.add(
        next.handle().subscribe({ next: (value) => subscriber.next(value), error: fail, complete: () => resolve() }),
      );
    });

  /** A client that has gone is no error that anybody is told of. */
  const ignoreLeaver = (error: unknown): void => {
    if (began || !leaving.signal.aborted || !(error instanceof LockAbortedError)) throw error;
  };

  const run = async (): Promise<void> => {
    const resources = decoration.resources(undefined, [context]);
    // Bound twice, to the handler and to the whole application: it locks once.
    if (isLockedByInterceptor(service, decoration, resources, handler)) return subscribe();
    const running = runLocked<unknown>(service, decoration, resources, subscribe, leaving.signal);
    const fallback = await running.catch(ignoreLeaver);
    // Where the handler did not run: Nest needs a value.
    if (!began) subscriber.next(fallback);
  };
  run().then(
    () => subscriber.complete(),
    (error: unknown) => subscriber.error(error),
  );

  return () => {
    stopWatching();
    leaving.abort();
    stream.unsubscribe();
  };
}
