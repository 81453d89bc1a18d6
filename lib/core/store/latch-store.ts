import { LockStoreError } from './store-error.js';

/** A latch as one caller describes it. */
export interface LatchSpec {
  readonly name: string;
  /** How often it has to be counted down before it opens. */
  readonly count: number;
  /** How long it lives after its creation, in milliseconds. The value of the caller that creates it counts. */
  readonly ttlMs: number;
}

/** A latch as the store has it. */
export interface LatchState {
  /** The count of the latch. If it differs from the caller's, nothing was changed. */
  readonly count: number;
  /** How many count-downs are missing. The latch is open at 0. */
  readonly remaining: number;
  /** The time until the latch expires, in milliseconds; 0 if there is no latch. */
  readonly ttlMs: number;
}

/**
 * What core needs from a store of latches. Every method is one atomic step, and executing it again changes nothing. The
 * first count-down or wait creates the latch. The listener of the lock store beside it hears of latches that open. A
 * rejection is a `LockStoreError`.
 */
export interface LatchStore {
  /** Why this store has no latches, and what to do instead. Not set if it has them. */
  readonly refusal?: string;
  /** Counts each id once. The last count-down notifies the waiting clients. */
  countDown(spec: LatchSpec, id: string): Promise<LatchState>;
  /**
   * Unless the latch is open, notes that this client waits for the next `placeMs`. The client is then told when it
   * opens.
   */
  wait(spec: LatchSpec, placeMs: number): Promise<LatchState>;
  /** Reads the state and changes nothing. */
  read(spec: LatchSpec): Promise<LatchState>;
  /** Why the store cannot be asked about a latch now, if it knows that without a command. */
  trouble(name: string): LockStoreError | undefined;
}

/** @param refusal why there are no latches, and what to do instead; part of the error message */
export function withoutLatches(refusal: string): LatchStore {
  const refuse = (): Promise<never> => Promise.reject(new LockStoreError('refused', refusal));
  return { refusal, countDown: refuse, wait: refuse, read: refuse, trouble: () => undefined };
}
