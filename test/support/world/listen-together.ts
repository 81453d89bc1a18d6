import type { StoreListener } from '../../../lib/kernel/store/message-health.js';
import type { LockStore } from '../../../lib/kernel/store/lock-store.js';

/** Lets a test hear the grants beside the client. To be called before the client is made: a store has one listener. */
export function listenTogether(store: LockStore): void {
  const listeners: StoreListener[] = [];
  store.listen({
    granted: (grant) => listeners.forEach((listener) => listener.granted(grant)),
    retained: (notice) => listeners.forEach((listener) => listener.retained?.(notice)),
    freed: (message) => listeners.forEach((listener) => listener.freed?.(message)),
    called: (call) => listeners.forEach((listener) => listener.called?.(call)),
    unasked: (isUnasked) => listeners.forEach((listener) => listener.unasked?.(isUnasked)),
    asked: (request) => listeners.forEach((listener) => listener.asked?.(request)),
    deliveryUncertain: () => listeners.forEach((listener) => listener.deliveryUncertain?.()),
    reconnected: () => listeners.forEach((listener) => listener.reconnected()),
  });
  store.listen = (listener) => void listeners.push(listener);
}
