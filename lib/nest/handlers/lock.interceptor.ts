import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { Observable, type Subscriber, Subscription } from 'rxjs';
import { currentContext } from '../../kernel/util/async-contexts.js';
import { LockAbortedError } from '../../kernel/api/errors.js';
import { LeaseLostError } from '../../kernel/api/lease-errors.js';
import type { Lease } from '../../kernel/api/lease.js';
import { onDisconnect } from './client-disconnect.js';
import { handlerLocksOf } from './handler-locks.js';
import { type Handler, InterceptedCall } from '../decorators/intercepted-call.js';
import { runLocked } from '../decorators/lock.decorators.js';
import type { LockPlan } from '../decorators/lock-plan.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { resultWithoutWork, sendingOf } from './streamed-result.js';
import { DEFAULT_NAME, getRedisLockToken } from '../service-parts.js';

/** The interceptor behind `@LockHandler`. */
@Injectable()
export class LockInterceptor implements NestInterceptor {
  readonly #service: RedisLockService;
  protected readonly service: string = DEFAULT_NAME;

  constructor(@Inject(getRedisLockToken()) service: RedisLockService) {
    this.#service = service;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const locks = handlerLocksOf(context.getHandler());
    const plans = locks?.plans.filter(({ lockService = DEFAULT_NAME }) => lockService === this.service);
    // Bound to a whole controller or application, it leaves the methods without @LockHandler alone.
    if (!locks || !plans?.length) return next.handle();
    const call = { service: this.#service, handler: locks.handler, plans, context, next };
    return new Observable((subscriber) => lockStream(call, subscriber));
  }
}

/**
 * Returns the interceptor class for a lock service. Each service has a class of its own, so that Nest injects the
 * service that the module of the controller imports. By token alone, two modules that are not global could be mixed up.
 */
export function lockInterceptorFor(serviceName: string = DEFAULT_NAME): Type<LockInterceptor> {
  if (serviceName === DEFAULT_NAME) return LockInterceptor;

  @Injectable()
  class NamedLockInterceptor extends LockInterceptor {
    protected override readonly service = serviceName;

    constructor(@Inject(getRedisLockToken(serviceName)) service: RedisLockService) {
      super(service);
    }
  }
  return NamedLockInterceptor;
}

export function isLockInterceptor(interceptor: unknown): boolean {
  return interceptor === LockInterceptor || (interceptor as Type | undefined)?.prototype instanceof LockInterceptor;
}

interface HandlerCall {
  readonly service: RedisLockService;
  readonly handler: Handler;
  /** The plans for this service. Nest calls the interceptor at least once for each of them. */
  readonly plans: readonly LockPlan<[ExecutionContext]>[];
  readonly context: ExecutionContext;
  readonly next: CallHandler;
}

/**
 * Subscribes to the handler under the lock.
 *
 * @returns a function that ends the subscription; the lock is released when the handler has ended
 */
function lockStream(call: HandlerCall, subscriber: Subscriber<unknown>): () => void {
  const { service, handler, plans, context, next } = call;
  const outer = InterceptedCall.of(handler);
  // A retry subscribes again from inside the call that has ended, so leave its context first.
  if (outer?.isOver) return outer.runOutside(() => lockStream(call, subscriber));
  const outside = currentContext();
  const leaving = new AbortController();
  const stream = new Subscription();
  const stopWatching = onDisconnect(context, () => leaving.abort());
  let began = false;

  /** Settles when the handler has ended. So the lease usually ends before the subscriber sees the end. */
  const subscribe = (plan: LockPlan<[ExecutionContext]>, lease?: Lease): Promise<void> =>
    new Promise((resolve, reject) => {
      began = true;
      stopWatching();
      const running = new InterceptedCall(handler, plan, lease, outer, outside);
      // Even after the subscription has ended, the handler may still be working.
      stream.add(() => running.end(resolve));
      if (stream.closed) return;
      const fail = (error: unknown): void => {
        reject(error);
        stream.unsubscribe();
      };
      const onLoss = (callback: (reason: unknown) => void): (() => void) => {
        if (!lease || plan.onLost === 'ignore') return () => {};
        const lost = (): void => {
          const reason: unknown = lease.signal.reason;
          // A holder that is asked to stop keeps its lease until it has ended.
          if (reason instanceof LeaseLostError) callback(reason);
        };
        lease.signal.addEventListener('abort', lost, { once: true });
        return () => lease.signal.removeEventListener('abort', lost);
      };
      stream.add(onLoss(fail));
      const pass = (value: unknown): void => {
        const sending = sendingOf(value, context);
        if (sending) {
          running.track(sending.sent);
          void sending.sent.then(onLoss(sending.breakOff));
        }
        subscriber.next(sending ? sending.value : value);
      };
      stream.add(
        running.enter(() =>
          next.handle().subscribe({
            next: pass,
            error: (error: unknown) => (running.isIdle ? fail(error) : subscriber.error(error)),
            complete: () => (running.isIdle ? running.end(resolve) : subscriber.complete()),
          }),
        ),
      );
    });

  /** A client that has disconnected needs no answer, so the end of its wait is no error. */
  const ignoreLeaver = (error: unknown): void => {
    if (began || !leaving.signal.aborted || !(error instanceof LockAbortedError)) throw error;
  };

  const run = async (): Promise<void> => {
    for (const plan of plans) {
      // The interceptor is bound once for each @LockHandler, and perhaps to the whole application as well.
      if (outer?.holds(plan)) continue;
      const args: [ExecutionContext] = [context];
      const resources = plan.resources(undefined, args);
      if (outer?.covers(plan, resources)) continue;
      const work = (lease: Lease): Promise<void> => subscribe(plan, lease);
      const running = runLocked<unknown>(service, plan, resources, work, undefined, args, leaving.signal);
      const fallback = await running.catch(ignoreLeaver);
      // Nest needs a value, even if the handler did not run.
      if (!began) subscriber.next(resultWithoutWork(fallback, context));
      return;
    }
    stopWatching();
    await new Promise<void>((resolve, reject) => {
      stream.add(() => resolve());
      if (stream.closed) return;
      const values = { next: (value: unknown) => subscriber.next(value), error: reject, complete: resolve };
      stream.add(next.handle().subscribe(values));
    });
  };
  const running = run();
  // The outer lock is released after this one.
  outer?.track(running);
  running.then(
    () => subscriber.complete(),
    (error: unknown) => subscriber.error(error),
  );

  return () => {
    stopWatching();
    leaving.abort();
    stream.unsubscribe();
  };
}
