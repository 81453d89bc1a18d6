import type { Clock } from './clock.js';

/** A promise that is settled from outside. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;

  constructor() {
    let settle!: Pick<Deferred<T>, 'resolve' | 'reject'>;
    this.promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }));
    this.resolve = settle.resolve;
    this.reject = settle.reject;
  }
}

/** Waits `delayMs`, or until the signal aborts. Resolves to what came first. */
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
