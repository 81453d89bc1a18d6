import type { FreedMessage } from './watch-store.js';

/**
 * The store has granted a resource to a waiter in its queue. The message does not name the waiter: an owner id is a
 * secret, and other processes may listen.
 */
export interface PushedGrant {
  readonly resource: string;
  readonly fencingToken: number;
  /**
   * When the waiter's command was sent: the lease is counted from then. `-Infinity`: not known, so the waiter has to
   * ask once more before it may trust the lease.
   */
  readonly sentAt: number;
  /**
   * Returns true if it was granted to this owner, with exactly this token and stamp. Only the store and the owner know
   * that.
   */
  readonly isFor: (owner: string) => boolean;
}

/**
 * The resource may be free sooner than a waiter was notified: the holder has made its lease shorter, or has released it
 * and it stays taken for a time. The waiter should ask at its end. The first four waiters are notified, each a second
 * after the one before, in case the ones before it have died. The message does not name the waiter; see
 * {@link PushedGrant}.
 *
 * Or, with `by`, it notifies a holder or a waiter that a newer call wants the resource, if its owner id agrees to that.
 */
export interface PushedNotice {
  readonly resource: string;
  /** When the waiter should ask, in milliseconds from now. */
  readonly leftMs: number;
  /** The send time of the waiter's last command, rounded down. */
  readonly sentAt: number;
  /** The instance of a newer call that wants the resource. If it is set, `leftMs` and `sentAt` mean nothing. */
  readonly by?: string;
  /** Returns true if it is meant for this owner. Only the store and the owner know that. */
  readonly isFor: (owner: string) => boolean;
}

/** Receives the messages of a store to its instance: grants, and watched resources that are free. */
export interface StoreListener {
  granted(grant: PushedGrant): void;
  /**
   * The resource is not free when the holder's lease ends, or a newer call wants it. Without this, a waiter finds out by
   * its heartbeats, and a newer call waits.
   */
  retained?(notice: PushedNotice): void;
  /** Called for a roll call: this instance is asked for the locks that it holds and waits for. */
  called?(call: RollCall): void;
  /** Called when Redis denies this instance the messages of roll calls, or allows them again. */
  unasked?(isUnasked: boolean): void;
  /**
   * Called when an operator requests something. The message is only a reason to check: any program that may publish can
   * send it.
   */
  asked?(request: OperatorRequest): void;
  freed?(message: FreedMessage): void;
  /** Called when messages may be lost from now on, until {@link reconnected}. */
  deliveryUncertain?(): void;
  /** Messages may have been missed. */
  reconnected(): void;
}

/** A pending request of an operator: to run a job now, or to report that a lease was ended. */
export interface OperatorRequest {
  /** The lock of the job, or the resource of the lease. */
  readonly resource: string;
  /** An unguessable name, of 22 letters, digits, `-` and `_`. */
  readonly id: string;
}

/**
 * A question to all instances. Any program that may publish can have sent it: a {@link RollCalls} knows if it is
 * genuine.
 */
export interface RollCall {
  /** Unguessable. */
  readonly nonce: string;
  /** The subject of the answers, as a text of the asking instance. Empty: all. */
  readonly scope: string;
}

/** The report of an instance that receives no roll calls. `at` is by the clock of the store, in epoch milliseconds. */
export interface LeftReport {
  readonly at: number;
  readonly report: string;
}

export interface StandingRollCall extends RollCall {
  /** By the clock of the store, in epoch milliseconds. */
  readonly askedAt: number;
  readonly ageMs: number;
  /** The number of instances that were asked; `undefined` if the store does not know. */
  readonly asked: number | undefined;
}

/**
 * Asks all instances, by a message. The store keeps the answers for five seconds, readable only for clients that can
 * read the locks. A rejection is a `LockStoreError`.
 */
export interface RollCalls {
  /**
   * Begins a roll call: every instance receives it by {@link StoreListener.called}. If another one began less than
   * {@link ROLL_CALL_EVERY_MS} ago, that one counts, and nothing is sent.
   *
   * @returns the current one
   */
  call(call: RollCall): Promise<StandingRollCall>;
  /**
   * Keeps the answer of this instance.
   *
   * @returns false if no such roll call is current; then nothing is kept
   */
  answer(nonce: string, answer: string): Promise<boolean>;
  /** Keeps the report of this instance for as long as an answer, because it receives no roll calls. */
  leave(report: string): Promise<void>;
  /** The reports that were left, by the client ids of their instances. */
  reports(): Promise<ReadonlyMap<string, LeftReport>>;
  count(nonce: string): Promise<number>;
  /** By the client ids of the instances. */
  read(nonce: string): Promise<ReadonlyMap<string, string>>;
  /**
   * Returns the client ids of the connected instances; `undefined` if the store does not know. It may know some only.
   */
  connected(): Promise<readonly string[] | undefined>;
}

/** The minimum interval between roll calls in the whole fleet. */
export const ROLL_CALL_EVERY_MS = 1_000;
/** The TTL of the answers to a roll call. */
export const ANSWERS_KEEP_MS = 5_000;

export interface MessageHealth {
  /**
   * The time for which a queued waiter may rely on messages, and not ask: `Infinity` if the loss of any message is
   * noticed. 0 while messages are not known to arrive.
   */
  readonly trustedForMs: number;
  /** The time at which the oldest unanswered probe was sent, on the monotonic clock. */
  readonly silentSince: number | undefined;
  /** Sets whether any waiter relies on messages. Only then does the store prove that they arrive. */
  setNeeded(isNeeded: boolean): void;
}

/**
 * Checks that a store gets only one listener.
 *
 * @throws Error if there is one already
 */
export function onlyListener<T>(present: T | undefined, next: T): T {
  if (present !== undefined) throw new Error('this store already has a listener');
  return next;
}
