import type { Clock } from './clock.js';

/** Waits `delayMs`, or until the signal aborts; says which came first. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<'time' | 'aborted'> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve('aborted');
    const settle = (why: 'time' | 'aborted'): void => {
      timer?.cancel();
      signal?.removeEventListener('abort', abort);
      resolve(why);
    };
    const abort = (): void => settle('aborted');
    const timer = delayMs === Infinity ? undefined : clock.setTimer(() => settle('time'), delayMs);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
