import type { LockStoreError } from './lock-store.js';

/** A latch as one caller states it. */
export interface LatchSpec {
  readonly name: string;
  /** How often it has to be counted down before it opens. */
  readonly count: number;
  /** How long it lives from its creation, in milliseconds; what its creator says counts. */
  readonly ttlMs: number;
}

/** A latch as the store has it. */
export interface LatchState {
  /** Another one than the caller states: then nothing was changed. */
  readonly count: number;
  /** How many count-downs are missing; 0: it is open. */
  readonly remaining: number;
  /** When the latch expires, in milliseconds; 0 where there is none. */
  readonly ttlMs: number;
}

/** Who hears that latches open. A message is no more than a reason to look: it may be late, and it may be lost. */
export interface LatchListener {
  opened(name: string, count: number): void;
  /** The connection is new: messages may have been missed. */
  reconnected(): void;
}

/**
 * What core needs of a place that keeps latches. Every method is one atomic step there, and one that is executed again
 * changes nothing twice. The first count-down or wait creates the latch. A rejection is a
 * `LockStoreError`.
 */
export interface LatchStore {
  /** Why there are no latches, with the way out; nothing where there are. */
  readonly refusal?: string;
  /** Counts each id once. The one that is the last tells the clients that wait. */
  countDown(spec: LatchSpec, id: string): Promise<LatchState>;
  /**
   * Unless the latch is open, this client counts as one that waits for the next `placeMs`, and is told when it opens.
   */
  wait(spec: LatchSpec, placeMs: number): Promise<LatchState>;
  /** Looks, and changes nothing. */
  read(spec: LatchSpec): Promise<LatchState>;
  /** Why nothing can be asked about a latch at this moment, where the store knows that without asking. */
  trouble(name: string): LockStoreError | undefined;
  /**
   * Tells the listener of latches that open. A store has one listener.
   *
   * @throws Error if it has one already
   */
  listen(listener: LatchListener): void;
}
