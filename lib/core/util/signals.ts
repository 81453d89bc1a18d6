import { setMaxListeners } from 'node:events';

interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly tell: () => void;
}

const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/**
 * Calls back when a signal of the user's aborts. However many calls are given one signal, it has one listener: Node
 * takes more than ten for a leak, and warns.
 *
 * @returns what ends that; the signal may live for much longer than the call
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const listeners = LISTENERS.get(signal) ?? listenTo(signal);
  const { callbacks } = listeners;
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || LISTENERS.get(signal) !== listeners) return;
    LISTENERS.delete(signal);
    signal.removeEventListener('abort', listeners.tell);
  };
}

function listenTo(signal: AbortSignal): Listeners {
  const callbacks = new Set<() => void>();
  const tell = (): void => {
    LISTENERS.delete(signal);
    for (const callback of callbacks) callback();
  };
  const listeners = { callbacks, tell };
  LISTENERS.set(signal, listeners);
  signal.addEventListener('abort', tell, { once: true });
  return listeners;
}

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

/**
 * Whether an error says that this signal aborted the work: it is the reason, or the AbortError that Node wraps it in.
 */
export function isAbortedBy(signal: AbortSignal, error: unknown): boolean {
  if (!signal.aborted) return false;
  return (
    error === signal.reason || (error instanceof Error && error.name === 'AbortError' && error.cause === signal.reason)
  );
}
