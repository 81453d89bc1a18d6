import { alarmThat, type Alarms } from './alarms.js';
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
  alarms: Alarms,
  command: Promise<T>,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Answer<T>> {
  return new Promise((resolve) => {
    const settle = (answer: Answer<T>): void => {
      alarms.cancel(alarm);
      signal?.removeEventListener('abort', abort);
      resolve(answer);
    };
    const abort = (): void => settle({ outcome: 'aborted' });
    const alarm = alarmThat(() => {
      const error = new LockStoreError('unknown', `no answer within ${Math.round(timeoutMs)} ms`);
      settle({ outcome: 'timeout', error });
    });
    alarms.setIn(alarm, timeoutMs);
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
  alarms: Alarms,
  command: Promise<T>,
  timeoutMs: number,
  operation: string,
  resource: string,
): Promise<T> {
  const answer = await answerWithin(alarms, command, timeoutMs);
  if (answer.outcome === 'answered') return answer.value;
  const outcome = answer.outcome === 'timeout' ? 'timeout' : 'failed';
  throw new LockUnavailableError(resource, operation, outcome, 'error' in answer ? answer.error : undefined);
}
