import { setMaxListeners } from 'node:events';
import { onAbort } from './on-abort.js';

/** For a signal that a user may hand to any number of listeners: Node would take more than ten for a leak, and warn. */
export function lastingController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/**
 * One signal that aborts with the first of two. By hand, because `AbortSignal.any` leaks on Node before 26. `dispose`
 * removes the listeners from signals that live longer than the call.
 */
export function mergeSignals(
  lasting: AbortSignal,
  own: AbortSignal | undefined,
): { readonly signal: AbortSignal; dispose(): void } {
  if (own === undefined) return { signal: lasting, dispose: () => {} };
  const controller = new AbortController();
  const forward = (): void => controller.abort(lasting.aborted ? lasting.reason : own.reason);
  lasting.addEventListener('abort', forward, { once: true });
  const stopListening = onAbort(own, forward);
  if (lasting.aborted || own.aborted) forward();
  return {
    signal: controller.signal,
    dispose() {
      lasting.removeEventListener('abort', forward);
      stopListening();
    },
  };
}
