import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  RequestTimeoutException,
  type Type,
} from '@nestjs/common';
import { defer, type Observable, raceWith, switchMap, throwError } from 'rxjs';

/**
 * The TimeoutInterceptor of Nest's documentation, with a time that the test ends.
 *
 * @param untilTimeIsUp called once for each request
 */
export function timeoutInterceptor(untilTimeIsUp: () => Promise<unknown>): Type<NestInterceptor> {
  @Injectable()
  class TimeoutInterceptor implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      const timeout = defer(untilTimeIsUp).pipe(switchMap(() => throwError(() => new RequestTimeoutException())));
      return next.handle().pipe(raceWith(timeout));
    }
  }
  return TimeoutInterceptor;
}
