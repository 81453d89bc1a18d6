import { inRootContext } from '../util/async-contexts.js';
import type { LockEvent, LockEventOf, LockEventType } from './events.js';

/**
 * Listens to lock events. Its errors and rejections are ignored, so an observer can never break a lock. It runs outside
 * the async context of any request: your `AsyncLocalStorage` has no store there.
 */
export type LockObserver = (event: LockEvent) => void;

/** The observers, in the order they were added. */
export class LockObservers {
  /** Each observer with the event types it wants; `undefined`: all types. */
  readonly #observers = new Map<LockObserver, readonly LockEventType[] | undefined>();
  /** The types that an observer listens to. Most events have no observer, and must cost nothing then. */
  #wanted: ReadonlySet<LockEventType> | 'all' = new Set();

  constructor(observers: Iterable<LockObserver> = []) {
    for (const observer of observers) this.add(observer);
  }

  /**
   * Adds an observer of all events, or of some types.
   *
   * @returns a function that removes it
   */
  add<T extends LockEventType>(observer: (event: LockEventOf<T>) => void, types?: readonly T[]): () => void {
    // It is called with these types only.
    const each = observer as LockObserver;
    this.#observers.set(each, types);
    this.#findWanted();
    return () => {
      this.#observers.delete(each);
      this.#findWanted();
    };
  }

  emit(event: LockEvent): void {
    if (this.#wanted === 'all' || this.#wanted.has(event.type)) inRootContext(this.#tell, this, event);
  }

  #tell(event: LockEvent): void {
    for (const [observer, types] of this.#observers) {
      if (types && !types.includes(event.type)) continue;
      try {
        const result: unknown = observer(event);
        // TypeScript accepts an async function here.
        if (result instanceof Promise) result.catch(() => {});
      } catch {
        // See LockObserver.
      }
    }
  }

  #findWanted(): void {
    const types = [...this.#observers.values()];
    this.#wanted = types.includes(undefined) ? 'all' : new Set(types.flatMap((some) => some ?? []));
  }
}
