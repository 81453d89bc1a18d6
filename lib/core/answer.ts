import type { Clock } from './clock.js';
import { LockUnavailableError } from './errors.js';
import { LockStoreError, asStoreError } from './lock-store.js';

/** What became of a command. `timeout` means unknown: it may have been executed, or still be. */
export type Answer<T> =
  | { readonly outcome: 'answered'; readonly value: T }
  | { readonly outcome: 'timeout'; readonly error: LockStoreError }
  | { readonly outcome: 'failed'; readonly error: LockStoreError }
  | { readonly outcome: 'aborted' };

/** Waits for a command's reply, but no longer than `timeoutMs` or until the signal aborts. Never rejects. */
export function answerWithin<T>(
  clock: Clock,
  command: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Answer<T>> {
  return new Promise((resolve) => {
    const settle = (answer: Answer<T>): void => {
      timer.cancel();
      signal?.removeEventListener('abort', abort);
      resolve(answer);
    };
    const abort = (): void => settle({ outcome: 'aborted' });
    const timer = clock.setTimer(
      () =>
        settle({
          outcome: 'timeout',
          error: new LockStoreError('unknown', `no answer within ${Math.round(timeoutMs)} ms`),
        }),
      timeoutMs,
    );
    signal?.addEventListener('abort', abort);
    command.then(
      (value) => settle({ outcome: 'answered', value }),
      (error: unknown) => settle({ outcome: 'failed', error: asStoreError(error) }),
    );
    if (signal?.aborted) abort();
  });
}

/** The reply to a command that is sent once. @throws LockUnavailableError that says why there is none */
export async function ask<T>(
  clock: Clock,
  command: Promise<T>,
  timeoutMs: number,
  operation: string,
  resource: string,
): Promise<T> {
  const answer = await answerWithin(clock, command, timeoutMs);
  if (answer.outcome === 'answered') return answer.value;
  const outcome = answer.outcome === 'timeout' ? 'timeout' : 'failed';
  throw new LockUnavailableError(resource, operation, outcome, 'error' in answer ? answer.error : undefined);
}
