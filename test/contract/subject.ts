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
   * Returns true if no lock, waiter or claim of a tick is left. The counter of the fencing tokens may stay. Expired
   * records do not count, even if they have not been deleted yet.
   */
  isEmpty(): Promise<boolean>;
  /** Closes the stores of all instances, and deletes the place. Called after each test, also after one that failed. */
  close(): Promise<void>;
}

/** Creates an empty place. Called once for each test. */
export type StoreSubjectFactory = () => StoreSubject | Promise<StoreSubject>;

/** The features of the stores, and the time limit of a test. */
export interface StoreFeatures {
  /** `true` if there are semaphores. Otherwise their tests are left out. */
  readonly semaphores: boolean;
  /** `true` if jobs are remembered: history, pauses, missed ticks. Otherwise only `claim` and `end` are tested. */
  readonly records: boolean;
  /**
   * `true` if there is one queue, whose owner mints all tokens. With several, as on a quorum, waiters granted together
   * have tokens in any order, and a waiter's reply has no position.
   */
  readonly oneQueue: boolean;
  /** The number of servers that notify a watcher of a free resource. With more than one, the messages need no mark. */
  readonly servers: number;
  readonly timeoutMs: number;
}

/** The features of one Redis. */
export const FEATURES: StoreFeatures = {
  semaphores: true,
  records: true,
  oneQueue: true,
  servers: 1,
  timeoutMs: 60_000,
};
