import { randomUUID } from 'node:crypto';
import type { JobStore } from '../../../lib/core/store/job-store.js';
import type { LatchStore } from '../../../lib/core/store/latch-store.js';
import type { LockStore, LockOwner, Queueing } from '../../../lib/core/store/lock-store.js';
import type { TickStore } from '../../../lib/core/store/tick-store.js';

/** A place that keeps locks, and a way to let its time pass. Fresh for every test. */
export interface Subject {
  /** One more instance on the same server. */
  open(instanceId: string): Promise<{ store: LockStore; tickStore: TickStore; latches: LatchStore; jobs: JobStore }>;
  /** The instance dies, and the server has noticed. */
  kill(instanceId: string): Promise<void>;
  /** The wall clock of the server, in milliseconds since the Unix epoch. */
  now(): Promise<number>;
  /** At least that long passes for the server. */
  pass(ms: number): Promise<void>;
  /** The TTL of a latch is over, and the places of those who wait for it. */
  expireLatch(name: string): Promise<void>;
  /** Whether the server keeps nothing of any resource. */
  isEmpty(): Promise<boolean>;
  close(): Promise<void>;
}

/** Long enough that nothing expires by itself within a test. */
export const LONG_MS = 60_000;
/** Short enough to wait for its end. */
export const SHORT_MS = 150;

/** A new owner of this instance. */
export function newOwner(store: LockStore, resource: string, mode: LockOwner['mode'] = 'exclusive'): LockOwner {
  return { resource, id: `${store.clientId}/${randomUUID()}`, mode };
}

/** What an owner asks for. */
export type Wish = Pick<LockOwner, 'mode' | 'permits'>;

export const EXCLUSIVE: Wish = { mode: 'exclusive' };
export const REENTRANT: Wish = { mode: 'reentrant' };
export const READ: Wish = { mode: 'read' };
export const WRITE: Wish = { mode: 'write' };

/** What a place has beside locks and read/write locks. */
export interface Features {
  readonly semaphores: boolean;
  /**
   * Whether there is one queue, and one that mints the tokens. Where nodes have their own, those who are granted together have tokens in
   * any order, and one who had too few votes for a moment may hold the lock and stand in the queue of a node.
   */
  readonly oneQueue: boolean;
}

export const EVERYTHING: Features = { semaphores: true, oneQueue: true };

/** Those of the wishes that can come true there. */
export function possible({ semaphores }: Features, ...wishes: Wish[]): Wish[] {
  return wishes.filter((wish) => semaphores || !wish.permits);
}

/** So many permits of a semaphore that has so many, or that is resized to have so many. */
export function permits(count: number, total: number, isResized = false): Wish {
  return { mode: 'semaphore', permits: { count, total, isResized } };
}

/** How one waits who cares for neither the stamp nor the length of the queue. */
export const PATIENT: Queueing = { sentAt: 0, maxWaiters: 1_000 };

/** Takes a free resource. @throws when it is not free */
export async function take(store: LockStore, owner: LockOwner, leaseMs = LONG_MS): Promise<number> {
  const reply = await store.acquire(owner, leaseMs);
  if (reply.status !== 'granted') throw new Error(`${owner.resource} is ${reply.status}`);
  return reply.fencingToken;
}

/** Joins the queue of a resource that is not free, or asks again from within. @throws when it does not stand in the queue then */
export async function enqueue(
  store: LockStore,
  owner: LockOwner,
  { leaseMs = LONG_MS, ...queueing }: Partial<Queueing> & { leaseMs?: number } = {},
): Promise<void> {
  const { status } = await store.acquire(owner, leaseMs, { ...PATIENT, ...queueing });
  if (status !== 'queued') throw new Error(`${owner.resource} is ${status}`);
}

/**
 * Expects that a holder that asks again has the token it had. Where each node mints tokens of its own, a node whose vote came too late
 * to count may have minted a larger one: when that node is among the first to answer, the holder gets its token.
 */
export function expectSameToken(again: number, before: number, { oneQueue }: Features): void {
  if (oneQueue) expect(again).toBe(before);
  else expect(again).toBeGreaterThanOrEqual(before);
}
