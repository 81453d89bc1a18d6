import { once } from 'node:events';

export { eventually } from '../../../lib/testing/contract/eventually.js';

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
