import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import 'reflect-metadata';
import { Observable, type Subscriber, Subscription } from 'rxjs';
import type { Lease } from '../core/lease.js';
import { onDisconnect } from './client-disconnect.js';
import { markHandlerLease } from './handler-leases.js';
import { runLocked } from './lock-call.js';
import type { LockDecoration } from './lock-decorator-options.js';
import type { RedisLockService } from './redis-lock.service.js';
import { getRedisLockToken } from './tokens.js';

/** The metadata key of `@LockHandler`. */
export const LOCK_HANDLER = 'nestjs-redis-lock:handler';

/** Holds the lock that `@LockHandler` names while the handler's stream is subscribed to. */
@Injectable()
export class LockInterceptor implements NestInterceptor {
  readonly #moduleRef: ModuleRef;

  constructor(moduleRef: ModuleRef) {
    this.#moduleRef = moduleRef;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const decoration = Reflect.getMetadata(LOCK_HANDLER, context.getHandler()) as
      LockDecoration<[ExecutionContext]> | undefined;
    // Bound to a whole controller or application: the methods without @LockHandler are none of its business.
    if (!decoration) return next.handle();
    const token = getRedisLockToken(decoration.lockService);
    const service = this.#moduleRef.get<RedisLockService>(token, { strict: false });
    return new Observable((subscriber) => lockStream(service, decoration, context, next, subscriber));
  }
}

/** Subscribes to the handler under the lock. Gives what ends both. */
function lockStream(
  service: RedisLockService,
  decoration: LockDecoration<[ExecutionContext]>,
  context: ExecutionContext,
  next: CallHandler,
  subscriber: Subscriber<unknown>,
): () => void {
  const leaving = new AbortController();
  const stream = new Subscription();
  const stopWatching = onDisconnect(context, () => leaving.abort());
  // The end of the stream is passed on after the release: whoever sees the response finds the resource free.
  let passOnEnd = (): void => {};

  const subscribe = (lease: Lease): Promise<void> =>
    new Promise((resolve) => {
      stopWatching();
      markHandlerLease(lease, { type: context.getClass(), name: context.getHandler().name });
      stream.add(() => resolve());
      if (stream.closed) return;
      const fail = (error: unknown): void => {
        passOnEnd = () => subscriber.error(error);
        stream.unsubscribe();
      };
      if (decoration.onLost === 'throw') {
        const lost = (): void => fail(lease.signal.reason);
        lease.signal.addEventListener('abort', lost, { once: true });
        stream.add(() => lease.signal.removeEventListener('abort', lost));
      }
      stream.add(
        next.handle().subscribe({
          next: (value) => subscriber.next(value),
          error: fail,
          complete: () => {
            passOnEnd = () => subscriber.complete();
            stream.unsubscribe();
          },
        }),
      );
    });

  const run = async (): Promise<void> => {
    const resources = decoration.resources(undefined, [context]);
    const lockOptions = { ...decoration.lockOptions, signal: leaving.signal };
    let began = false;
    const fallback = await runLocked<unknown>(
      service,
      { ...decoration, onLost: 'abort' },
      resources,
      lockOptions,
      (lease) => {
        began = true;
        return subscribe(lease);
      },
    );
    if (began) return passOnEnd();
    subscriber.next(fallback);
    subscriber.complete();
  };
  run().catch((error: unknown) => subscriber.error(error));

  return () => {
    stopWatching();
    leaving.abort();
    stream.unsubscribe();
  };
}
