import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** Tries until the probe passes, and resolves to its result. The limit is generous: only a test that fails needs it. */
export async function eventually<T>(probe: () => T | Promise<T>, withinMs = 15_000): Promise<T> {
  const giveUpAt = performance.now() + withinMs;
  // Polls slower the longer it takes.
  for (let pauseMs = 10; ; pauseMs = Math.min(25, pauseMs + 1)) {
    try {
      return await probe();
    } catch (error) {
      if (performance.now() >= giveUpAt) throw error;
    }
    await sleep(pauseMs);
  }
}

/** The reason with which a promise is rejected. Throws if it is fulfilled. */
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
