import { createHook } from 'node:async_hooks';

interface OwnTimer {
  readonly ms: number;
  /** Where it was made. */
  readonly stack: string;
}

/**
 * Watches the timers that this test file makes, with all that it imports. Other files run in the same process, and Jest itself:
 * their functions come from another realm.
 */
export class OwnTimers implements Disposable {
  /** All that were made since. */
  readonly made: OwnTimer[] = [];
  /** Those that are neither over nor cleared. Node tells a few turns later of those that are. */
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
