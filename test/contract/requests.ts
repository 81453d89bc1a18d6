import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { LockOwner, LockStore, Queueing } from '../../lib/kernel/store/lock-store.js';
import type { Holder } from '../../lib/kernel/api/holder.js';
import type { LockState, LockWaiter } from '../../lib/kernel/store/lock-state.js';
import { assertAtLeast } from './asserts.js';
import type { StoreFeatures } from './subject.js';

/** Long enough that nothing expires by itself within a test. */
export const LONG_MS = 60_000;
/** Short enough to wait for its end. */
export const SHORT_MS = 150;

/** A new owner of this instance. */
export function newOwner(store: LockStore, resource: string, mode: LockOwner['mode'] = 'exclusive'): LockOwner {
  return { resource, id: `${store.clientId}/${randomUUID()}`, mode };
}

/** The request of an owner. */
export type Wish = Pick<LockOwner, 'mode' | 'permits'>;

export const EXCLUSIVE: Wish = { mode: 'exclusive' };
export const REENTRANT: Wish = { mode: 'reentrant' };
export const READ: Wish = { mode: 'read' };
export const WRITE: Wish = { mode: 'write' };

/** The wishes that the store supports. */
export function possible({ semaphores }: Pick<StoreFeatures, 'semaphores'>, ...wishes: Wish[]): Wish[] {
  return wishes.filter((wish) => semaphores || !wish.permits);
}

/** This many permits of a semaphore that has `total`, or that is resized to have as many. */
export function permits(count: number, total: number, isResized = false): Wish {
  return { mode: 'semaphore', permits: { count, total, isResized } };
}

/** A wish of each mode that the store has. @param semaphore what is asked of a semaphore */
export function everyMode(features: Pick<StoreFeatures, 'semaphores'>, semaphore = permits(2, 3)): Wish[] {
  return possible(features, EXCLUSIVE, REENTRANT, WRITE, READ, semaphore);
}

/** The queueing of a waiter that needs neither the stamp nor a limit of the queue. */
export const PATIENT: Queueing = { sentAt: 0, maxWaiters: 1_000 };

/** Takes a free resource. @throws if it is not free */
export async function take(store: LockStore, owner: LockOwner, leaseMs = LONG_MS): Promise<number> {
  const reply = await store.acquire(owner, leaseMs);
  if (reply.status !== 'granted') throw new Error(`acquire of ${owner.resource} answered ${reply.status}, not granted`);
  return reply.fencingToken;
}

/** Joins the queue of a resource that is not free, or asks again from there. @throws if it is not in the queue then */
export async function enqueue(
  store: LockStore,
  owner: LockOwner,
  { leaseMs = LONG_MS, ...queueing }: Partial<Queueing> & { leaseMs?: number } = {},
): Promise<void> {
  const { status } = await store.acquire(owner, leaseMs, { ...PATIENT, ...queueing });
  if (status !== 'queued') throw new Error(`acquire of ${owner.resource} answered ${status}, not queued`);
}

/**
 * A holder that asks again has the token it had. If each node mints tokens of its own, a node whose vote came too late
 * to count may have minted a larger one. When that node is among the first to answer, the holder gets its token.
 */
export function assertSameToken(again: number, before: number, { oneQueue }: StoreFeatures): void {
  if (oneQueue) assert.equal(again, before);
  else assertAtLeast(again, before);
}

/** Each token is larger than the one before. */
export function assertGrowing(tokens: readonly number[]): void {
  assert.deepEqual(
    tokens,
    [...new Set(tokens)].sort((a, b) => a - b),
  );
}

/** The part of a state that depends neither on the time nor on the caller. */
export interface UntimedState extends Omit<LockState, 'holders' | 'waiters'> {
  readonly holders: readonly Omit<Holder, 'heldMs' | 'leaseMs' | 'mode' | 'isThisProcess'>[];
  readonly waiters: readonly Omit<LockWaiter, 'placeMs' | 'leaseMs'>[];
}

/**
 * The state without what depends on the clock, and on who asks: how long leases are, how long holders have held, and how
 * long places last. These are checked.
 */
export function untimed(state: LockState): UntimedState {
  const holders = state.holders.map(({ heldMs, leaseMs, mode, isThisProcess, ...holder }) => {
    assertDuration('heldMs', heldMs);
    assertDuration('leaseMs', leaseMs);
    assert.equal(typeof isThisProcess, 'boolean');
    assert.equal(mode, state.mode);
    return holder;
  });
  const waiters = state.waiters.map(({ placeMs, leaseMs, ...waiter }) => {
    assertDuration('placeMs', placeMs);
    assertDuration('leaseMs', leaseMs);
    return waiter;
  });
  return { ...state, holders, waiters };
}

function assertDuration(name: string, ms: number | undefined): void {
  if (ms !== undefined) assert.ok(Number.isInteger(ms) && ms >= 0 && ms < 24 * 60 * 60 * 1_000, `${name} is ${ms}`);
}
