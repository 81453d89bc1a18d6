import { createHook } from 'node:async_hooks';

interface OwnTimer {
  readonly ms: number;
  /** The stack of its creation. */
  readonly stack: string;
}

/**
 * Watches the timers that this test file makes, with all that it imports. Other files run in the same process, and Jest itself:
 * their functions come from another realm.
 */
export class OwnTimers implements Disposable {
  /** All that were made since. */
  readonly made: OwnTimer[] = [];
  /** Timers that are pending. Node reports the end of one a few turns late. */
  readonly left = new Map<number, OwnTimer>();
  readonly #hook = createHook({
    init: (id, type, _trigger, resource: { _onTimeout?: unknown; _idleTimeout?: number }) => {
      if (type !== 'Timeout' || !(resource._onTimeout instanceof Function)) return;
      const timer = { ms: resource._idleTimeout!, stack: new Error('A timer').stack! };
      this.made.push(timer);
      this.left.set(id, timer);
    },
    destroy: (id) => void this.left.delete(id),
  }).enable();

  [Symbol.dispose](): void {
    this.#hook.disable();
  }
}
