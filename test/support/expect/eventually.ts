import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Tries until the probe passes, and gives what it gave. The bound is generous: it only says how long a broken test takes.
 */
export async function eventually<T>(probe: () => T | Promise<T>, withinMs = 15_000): Promise<T> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (performance.now() >= giveUpAt) throw error;
    }
    await sleep(10);
  }
}

/** What a promise is rejected with. Fails where it is not rejected. */
export async function rejection<E = Error>(promise: Promise<unknown>): Promise<E> {
  try {
    await promise;
  } catch (error) {
    return error as E;
  }
  throw new Error('The promise was to be rejected, and was fulfilled');
}

/** Resolves when the signal has aborted, also when it had before. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
