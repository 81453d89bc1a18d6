import { Deferred } from '../../core/util/promises.js';

/**
 * Keeps commands in order that leave by different connections: of those for one key each is sent when the one before it was
 * executed, or will never be.
 */
export class KeyOrder {
  readonly #last = new Map<string, Deferred<void>>();

  /** How many keys have a command under way. */
  get size(): number {
    return this.#last.size;
  }

  /** @param send is told whom to call as soon as the command was executed, where that is before it is settled */
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
