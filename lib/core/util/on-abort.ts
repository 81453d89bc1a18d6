interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly tell: () => void;
}

const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/**
 * Calls back when a signal of the user's aborts. However many calls are given one signal, it has one listener: Node takes more than ten
 * for a leak, and warns.
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
