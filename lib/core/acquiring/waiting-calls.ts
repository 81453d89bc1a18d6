import type { PendingCall } from './pending-call.js';

/** The calls that wait for their turn, first come first. It takes no room while nobody waits, as for nearly every lock. */
export class WaitingCalls {
  #calls: Set<PendingCall> | undefined;

  get size(): number {
    return this.#calls?.size ?? 0;
  }

  get first(): PendingCall | undefined {
    return this.#calls?.values().next().value;
  }

  add(call: PendingCall): void {
    (this.#calls ??= new Set()).add(call);
  }

  delete(call: PendingCall): void {
    this.#calls?.delete(call);
  }

  /** Takes the first one out. */
  next(): PendingCall | undefined {
    const { first } = this;
    if (first) this.delete(first);
    return first;
  }

  /** Takes all of them out. */
  clear(): PendingCall[] {
    const calls = [...(this.#calls ?? [])];
    this.#calls = undefined;
    return calls;
  }
}
