import { setMaxListeners } from 'node:events';

interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly tell: () => void;
}

const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/**
 * Calls back when a user's signal aborts. A signal gets one listener, for any number of calls: Node reports more than
 * ten as a leak. @returns a function that removes the callback; the signal may live much longer than the call
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

/** Creates a signal that accepts any number of listeners: Node reports more than ten as a leak. */
export function lastingController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/**
 * Returns a signal that aborts as soon as one of two signals aborts, with the same reason. Use it to combine
 * `lease.signal` and the signal of a job, for example. `dispose` removes its listeners from both signals: call it when
 * the work is done. Before Node 26, `AbortSignal.any` would keep signals with listeners in memory forever.
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

/** `CanceledError` is the one of axios. */
const ABORT_ERRORS = ['AbortError', 'CanceledError'];

/**
 * Returns true if work failed because this signal aborted: with the reason itself, or with an AbortError. Node puts the
 * reason into its `cause`; axios and others leave the cause out.
 */
export function isAbortedBy(signal: AbortSignal, error: unknown): boolean {
  if (!signal.aborted) return false;
  if (error === signal.reason) return true;
  // An error of Node is not an instance of the Error of another realm, such as a test runner's.
  const { name, cause } = (error ?? {}) as Partial<Error>;
  return ABORT_ERRORS.includes(name!) && (cause === undefined || cause === signal.reason);
}
