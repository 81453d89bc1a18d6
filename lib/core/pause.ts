import type { Clock } from './clock.js';

/** Something to wait for besides time. Calls back once; gives the function that stops listening. */
export type WakeSource = (wake: () => void) => () => void;

/** Waits `delayMs`, or until it is woken, or until the signal aborts; says which came first. */
export function pause(
  clock: Clock,
  delayMs: number,
  signal?: AbortSignal,
  source?: WakeSource,
): Promise<'time' | 'woken' | 'aborted'> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve('aborted');
    let stopListening: (() => void) | undefined;
    const settle = (why: 'time' | 'woken' | 'aborted'): void => {
      timer?.cancel();
      stopListening?.();
      signal?.removeEventListener('abort', abort);
      resolve(why);
    };
    const abort = (): void => settle('aborted');
    const timer = delayMs === Infinity ? undefined : clock.setTimer(() => settle('time'), delayMs);
    signal?.addEventListener('abort', abort, { once: true });
    stopListening = source?.(() => settle('woken'));
  });
}
