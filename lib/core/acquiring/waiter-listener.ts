import type { WaitingTogether } from './pending-call.js';
import type { FoundInUse, LockOwner } from '../store/lock-store.js';

/** The queue that a waiter asks for. */
export interface WaiterListener extends WaitingTogether {
  granted(fencingToken: number, sentAt: number, now: number): void;
  /** The time of its call is over. */
  outOfTime(): void;
  /** Its call is not granted yet. */
  waitsOn(now: number): void;
  /** The store does not answer, and is asked again. */
  waitsForStore(): void;
  /** The queue of the store is full. */
  full(now: number): void;
  /** The resource is in use as something else. */
  mismatched(found: FoundInUse): void;
  /** The store will never grant it. */
  refused(): void;
  /** Whether this process holds the lock of this owner. */
  holds(owner: LockOwner): boolean;
}
