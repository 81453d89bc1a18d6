import type { LockStores } from '../../lib/kernel/lock-stores.js';

/** The `describe` and `it` of Jest, or others of the same form. */
export interface ContractRunner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: (name: string, test: () => Promise<void>) => unknown;
}

/** An empty place for locks, such as a new database or a new key prefix, and the time that passes there. */
export interface StoreSubject {
  /** Opens the stores of one more instance, in the same place. */
  open(instanceId: string): LockStores | Promise<LockStores>;
  /**
   * Ends an instance without a release, as a crash does. Resolves when the place has noticed: it sends this instance
   * nothing more, and passes over its waiters.
   */
  kill(instanceId: string): Promise<void>;
  /** The time of the place, in milliseconds since the Unix epoch. Leases and ticks are judged by it. */
  now(): Promise<number>;
  /**
   * Lets at least this many milliseconds pass in the place: a sleep on a real server, or a step of its clock. The tests
   * pass 150 ms many times, and a few seconds at most.
   */
  pass(ms: number): Promise<void>;
  /**
   * Whether the place keeps nothing: no lock, no waiter, no claim of a tick. What the fencing tokens are
   * counted with may stay. Records that have expired do not count, even if they have not been deleted yet.
   */
  isEmpty(): Promise<boolean>;
  /** Closes the stores of all instances, and deletes the place. Called after each test, also after one that failed. */
  close(): Promise<void>;
}

/** Creates an empty place. Called once for each test. */
export type StoreSubjectFactory = () => StoreSubject | Promise<StoreSubject>;

/** What the stores can do, and how long a test may take. */
export interface StoreFeatures {
  /** Whether there are semaphores. If not, their tests are left out. */
  readonly semaphores: boolean;
  /** Whether jobs are remembered: history, pauses, missed ticks. If not, only `claim` and `end` are tested. */
  readonly records: boolean;
  /**
   * Whether there is one queue, whose owner mints all tokens. With several, as on a quorum, waiters that are granted
   * together have tokens in any order, and the answer to a waiter has no place in the queue.
   */
  readonly oneQueue: boolean;
  /** How many servers tell a watcher that a resource is free. With more than one, the messages need no mark. */
  readonly servers: number;
  readonly timeoutMs: number;
}

/** Those of one Redis. */
export const FEATURES: StoreFeatures = {
  semaphores: true,
  records: true,
  oneQueue: true,
  servers: 1,
  timeoutMs: 60_000,
};
