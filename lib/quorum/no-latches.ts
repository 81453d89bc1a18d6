import type { LatchState, LatchStore } from '../core/store/latch-store.js';
import { LockStoreError } from '../core/store/lock-store.js';

/** Where there can be no latches. */
export class RefusedLatchStore implements LatchStore {
  /** @param why for people, with the way out */
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
