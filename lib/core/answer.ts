import type { Clock } from './clock.js';
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
