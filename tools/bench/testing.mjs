// node:test gives a promise for each test, which only its runner waits for.
import * as runner from 'node:test';

export const describe = (name, body) => void runner.describe(name, body);
export const it = (name, body) => void runner.it(name, body);

/** What hooks have begun, and what ends it. Of what is not ended, some keeps its process alive: then the run never ends. */
export class Begun {
  #ends = [];

  /** To be called as soon as there is something to end. */
  endBy(end) {
    this.#ends.unshift(end);
  }

  /** The last one first, each whatever becomes of the others. Rejects with what failed. */
  async end() {
    const failures = [];
    for (const end of this.#ends) {
      try {
        await end();
      } catch (error) {
        failures.push(error);
      }
    }
    this.#ends = [];
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures);
  }
}
