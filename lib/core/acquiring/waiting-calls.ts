import type { Call } from './pending-call.js';

/** The calls that wait for their turn, first come first. It takes no room while nobody waits, as for nearly every lock. */
export class WaitingCalls {
  #calls: Set<Call> | undefined;

  get size(): number {
    return this.#calls?.size ?? 0;
  }

  get first(): Call | undefined {
    return this.#calls?.values().next().value;
  }

  add(call: Call): void {
    (this.#calls ??= new Set()).add(call);
  }

  delete(call: Call): void {
    this.#calls?.delete(call);
  }

  /** Takes the first one out. */
  next(): Call | undefined {
    const { first } = this;
    if (first) this.delete(first);
    return first;
  }

  /** Takes all of them out. */
  clear(): Call[] {
    const calls = [...(this.#calls ?? [])];
    this.#calls = undefined;
    return calls;
  }
}
