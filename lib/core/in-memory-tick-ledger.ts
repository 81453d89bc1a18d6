import { InMemoryServer } from './in-memory-server.js';
import type { Ownership } from './lock-store.js';
import { type ClaimChange, FINISHED, type TickClaims } from './tick-claims.js';
import type { Tick, TickClaim, TickLedger, TickReply } from './tick-ledger.js';

/**
 * Claims of ticks in the memory of **one process**, for tests without Redis. Give it the server of the lock store: the
 * claim of a tick takes the job's lock there in the same step.
 */
export class InMemoryTickLedger implements TickLedger, TickClaims {
  constructor(private readonly server: InMemoryServer = new InMemoryServer()) {}

  async claim(tick: Tick, { ownership, leaseMs, keepMs, overlap, rescue }: TickClaim): Promise<TickReply> {
    const { claims, locks } = this.server;
    const { resource } = tick;
    const key = claimKey(tick);
    const claimant = claims.get(key);
    if (claimant === FINISHED || (rescue && claimant === undefined)) return { status: 'finished' };
    const lock = locks.get(resource);
    const member = lock?.member(ownership.owner);
    if (lock && member) {
      // The command was sent again.
      lock.lengthen(member, leaseMs);
      return { status: 'granted', fencingToken: member.fencingToken };
    }
    const ttlMs = locks.ttlMs(resource);
    if (claimant !== undefined && claimant !== ownership.owner) {
      // Whoever watches keeps the claim in memory, however long the run takes.
      if (rescue) claims.set(key, claimant, keepMs);
      if (lock || !rescue) return { status: 'taken', ttlMs };
    }
    if (lock && overlap === 'skip') {
      claims.set(key, FINISHED, keepMs);
      return { status: 'overlap' };
    }
    claims.set(key, ownership.owner, keepMs);
    if (lock) return { status: 'claimed', ttlMs };
    const run: Ownership = { resource, owner: ownership.owner, mode: 'exclusive' };
    return { status: 'granted', fencingToken: this.server.take(run, leaseMs) };
  }

  async finish(tick: Tick, { owner }: Ownership, keepMs: number): Promise<void> {
    const { claims } = this.server;
    const key = claimKey(tick);
    if (claims.get(key) === owner) claims.set(key, FINISHED, keepMs);
  }

  async exchange(tick: Tick, { to, from, force, drop, keepMs }: ClaimChange): Promise<string | null> {
    const { claims } = this.server;
    const key = claimKey(tick);
    if (claims.get(key) === drop) claims.delete(key);
    const standing = claims.get(key);
    const isOpen = standing === undefined || standing === from || (force && standing !== FINISHED);
    const stands = to !== undefined && isOpen ? to : standing;
    if (stands !== undefined && keepMs !== undefined) claims.set(key, stands, keepMs);
    return stands ?? null;
  }
}

function claimKey({ resource, tick }: Tick): string {
  return JSON.stringify([resource, tick]);
}
