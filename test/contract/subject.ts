import { randomUUID } from 'node:crypto';
import type { LockStore, Ownership } from '../../lib/core/lock-store.js';
import type { TickLedger } from '../../lib/core/tick-ledger.js';

/** A place that keeps locks, and a way to let its time pass. Fresh for every test. */
export interface Subject {
  /** One more instance on the same server. */
  open(instanceId: string): Promise<{ store: LockStore; ledger: TickLedger }>;
  /** The instance dies, and the server has noticed. */
  kill(instanceId: string): Promise<void>;
  /** At least that long passes for the server. */
  pass(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Long enough that nothing expires by itself within a test. */
export const LONG_MS = 60_000;
/** Short enough to wait for its end. */
export const SHORT_MS = 50;

/** The ownership of a new contender of this instance. */
export function contender(store: LockStore, resource: string, mode: Ownership['mode'] = 'exclusive'): Ownership {
  return { resource, owner: `${store.instanceId}/${randomUUID()}`, mode };
}

/** Takes a free resource. @throws when it is not free */
export async function take(store: LockStore, ownership: Ownership, leaseMs = LONG_MS): Promise<number> {
  const reply = await store.acquire(ownership, leaseMs, false);
  if (reply.status !== 'granted') throw new Error(`${ownership.resource} is ${reply.status}`);
  return reply.fencingToken;
}
