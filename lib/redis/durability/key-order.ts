import { Deferred } from '../../core/util/promises.js';

/**
 * Keeps the commands for one key in order, although they use different connections. A command is sent when the one
 * before it was executed, or will never be.
 */
export class KeyOrder {
  readonly #last = new Map<string, Deferred<void>>();

  /** The number of keys with a command under way. */
  get size(): number {
    return this.#last.size;
  }

  /** @param send gets a function to call when the command was executed, if that is before it is settled */
  run<T>(key: string, send: (executed: () => void) => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const own = new Deferred<void>();
    const executed = (): void => {
      if (this.#last.get(key) === own) this.#last.delete(key);
      own.resolve();
    };
    this.#last.set(key, own);
    const result = before ? before.promise.then(() => send(executed)) : send(executed);
    result.then(executed, executed);
    return result;
  }
}
