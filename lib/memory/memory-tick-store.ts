import { MemoryServer } from './memory-server.js';
import type { LockOwner } from '../core/store/lock-store.js';
import {
  type ClaimChange,
  claimText,
  FINISHED,
  readClaim,
  RERUNS,
  RETURNED,
  returnedFrom,
  RUNS,
  type TickNode,
  type DueRefusal,
  LAST_TICK_KEEP_MS,
  refusalOf,
  type TickDue,
  type Tick,
  type TickClaim,
  type TickStore,
  type TickReply,
} from '../core/store/tick-store.js';

/**
 * Claims of ticks in the memory of **one process**, for tests without Redis. Pass it the server of the lock store: the
 * claim of a tick takes the job's lock there in the same step.
 */
export class MemoryTickStore implements TickStore, TickNode {
  constructor(private readonly server: MemoryServer = new MemoryServer()) {}

  async claim(
    tick: Tick,
    { owner: { id: owner }, leaseMs, keepMs, overlap, takeOver, due }: TickClaim,
  ): Promise<TickReply> {
    const { claims, locks } = this.server;
    const { resource } = tick;
    const key = claimKey(tick);
    const claim = claims.get(key);
    if (claim === FINISHED || (takeOver !== 'nothing' && claim === undefined)) return { status: 'finished' };
    const { claimant, state } = readClaim(claim);
    const rerun = state === RERUNS || (state === RUNS && claimant !== owner);
    const lock = locks.get(resource);
    const member = lock?.member(owner);
    if (lock && member) {
      // The command was sent again.
      lock.lengthen(member, leaseMs);
      return { status: 'granted', fencingToken: member.fencingToken, rerun };
    }
    const ttlMs = locks.ttlMs(resource);
    if (claim !== undefined && claimant !== owner && claimant !== RETURNED) {
      // A watching instance keeps the claim alive, however long the run takes.
      if (takeOver !== 'nothing') claims.set(key, claim, keepMs);
      const isBegun = state !== '';
      if (lock || takeOver === 'nothing' || (isBegun && takeOver === 'unbegun')) {
        return { status: 'taken', ttlMs, isBegun };
      }
    }
    if (due) {
      const refusal = claim === undefined ? this.#judge(tick, due) : undefined;
      if (refusal) return refusal;
      this.#note(tick, due);
    }
    if (lock && overlap === 'skip') {
      claims.set(key, FINISHED, keepMs);
      return { status: 'overlap' };
    }
    const granted = claimText(owner, rerun ? RERUNS : RUNS);
    if (lock) {
      // A granted run stays granted: this may be an old command that comes late, after the run.
      claims.set(key, state === '' ? owner : granted, keepMs);
      return { status: 'claimed', ttlMs };
    }
    claims.set(key, granted, keepMs);
    const run: LockOwner = { resource, id: owner, mode: 'exclusive' };
    return { status: 'granted', fencingToken: this.server.take(run, leaseMs), rerun };
  }

  async finish(tick: Tick, { id: owner }: LockOwner, keepMs: number): Promise<void> {
    const { claims } = this.server;
    const key = claimKey(tick);
    if (readClaim(claims.get(key)).claimant === owner) claims.set(key, FINISHED, keepMs);
  }

  async giveBack(tick: Tick, { id: owner }: LockOwner, keepMs: number): Promise<void> {
    const { claims } = this.server;
    const key = claimKey(tick);
    const claim = claims.get(key);
    if (claim !== undefined && readClaim(claim).claimant === owner) claims.set(key, returnedFrom(claim), keepMs);
  }

  async exchange(tick: Tick, { to, from, force, drop, keepMs, due, isJudged }: ClaimChange): Promise<string | null> {
    const { claims } = this.server;
    const key = claimKey(tick);
    // Kept, not deleted: the last tick of the job is already noted, and would refuse it.
    if (drop !== undefined && claims.get(key) === drop) claims.replace(key, returnedFrom(drop));
    const standing = claims.get(key);
    const refusal = due && isJudged && standing === undefined ? this.#judge(tick, due) : undefined;
    if (refusal) return `${refusal.status} ${refusal.lateMs}`;
    const isOpen =
      standing === undefined ||
      standing === from ||
      readClaim(standing).claimant === RETURNED ||
      (force && standing !== FINISHED);
    const stands = to !== undefined && isOpen ? to : standing;
    if (due && to !== undefined && isOpen) this.#note(tick, due);
    if (stands !== undefined && keepMs !== undefined) claims.set(key, stands, keepMs);
    return stands ?? null;
  }

  #judge({ resource }: Tick, due: TickDue): DueRefusal | undefined {
    const { lastTicks, clock } = this.server;
    return refusalOf(due, lastTicks.get(resource) ?? 0, clock.wallNow());
  }

  #note({ resource }: Tick, { at, earlyMs }: TickDue): void {
    const { lastTicks, clock } = this.server;
    const last = lastTicks.get(resource) ?? 0;
    if (at > last || last > clock.wallNow() + earlyMs) lastTicks.set(resource, at, LAST_TICK_KEEP_MS);
  }
}

function claimKey({ resource, tick }: Tick): string {
  return JSON.stringify([resource, tick]);
}
