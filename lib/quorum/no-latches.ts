import type { LatchState, LatchStore } from '../core/store/latch-store.js';
import { LockStoreError } from '../core/store/store-error.js';

/** The latch store of a quorum: it refuses every command. */
export class RefusedLatchStore implements LatchStore {
  /** @param refusal why there are no latches, and what to do instead; part of the error message */
  constructor(readonly refusal: string) {}

  countDown(): Promise<LatchState> {
    return this.#refuse();
  }

  wait(): Promise<LatchState> {
    return this.#refuse();
  }

  read(): Promise<LatchState> {
    return this.#refuse();
  }

  trouble(): undefined {}

  listen(): void {}

  #refuse(): Promise<never> {
    return Promise.reject(new LockStoreError('refused', this.refusal));
  }
}
