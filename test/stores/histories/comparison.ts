import { strict as assert } from 'node:assert';
import type { Holder, Holders } from '../../../lib/kernel/api/holder.js';
import type { AcquireReply, KeepReply, LockOwner } from '../../../lib/kernel/store/lock-store.js';
import type { LockState } from '../../../lib/kernel/store/lock-state.js';
import type { LockModel } from '../../support/simulation/lock-model.js';
import { TokenOrder } from './matched-tokens.js';
import { untimed } from '../../contract/requests.js';
import { without } from '../../../lib/kernel/api/validation.js';

/** No lease of a history is as old as that. */
const MAX_HISTORY_MS = 60 * 60_000;

/** The passing of time in a store's history. */
export interface Pace {
  /** The length of a unit of its leases. */
  readonly unitMs: number;
  /** The allowed difference between the remaining time of a lease and the model's. */
  readonly slackMs: number;
  /**
   * `true` if replies about shared locks are estimates, made without visiting every member: readers may get a later end
   * than the last one, and callers that want permits an earlier one than the first.
   */
  readonly hasRoughReplies: boolean;
}

/** Compares what a store says and shows with what the model does, and throws where they differ. */
export class Comparison {
  readonly tokens = new TokenOrder();
  /** The semaphores seen in use. */
  readonly #permits = new Map<string, { used: number; total: number }>();

  constructor(
    private readonly model: LockModel,
    private readonly pace: Pace,
  ) {}

  same(actual: unknown, expected: unknown, where: unknown): void {
    assert.deepEqual(
      actual,
      expected,
      `${JSON.stringify(where)}: ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`,
    );
  }

  sameReply(reply: AcquireReply, expected: AcquireReply, where: { readonly resource: string }): void {
    this.same(reply.status, expected.status, where);
    if (reply.status === 'granted' && expected.status === 'granted') {
      this.tokens.note(expected.fencingToken, reply.fencingToken);
    } else if (reply.status !== 'granted' && expected.status !== 'granted') {
      this.#sameReplyTtl(reply.ttlMs, expected.ttlMs, where.resource);
      if (reply.status === 'mismatch' && expected.status === 'mismatch') this.same(reply.found, expected.found, where);
      if (reply.status !== 'mismatch' && expected.status !== 'mismatch') this.#sameSeen(reply.seen!, expected.seen!);
      if (reply.status === 'queued' && expected.status === 'queued')
        this.#sameSoonest(reply.soonestMs!, expected.soonestMs!, where.resource);
    }
  }

  sameKept(
    reply: Exclude<KeepReply, Error>,
    expected: Exclude<KeepReply, Error>,
    where: { readonly resource: string },
  ): void {
    this.same(reply.status, expected.status, where);
    if (reply.status !== 'kept' || expected.status !== 'kept') return;
    this.#sameReplyTtl(reply.ttlMs, expected.ttlMs, where.resource);
    this.#sameSeen(reply.seen!, expected.seen!);
    this.#sameSoonest(reply.soonestMs!, expected.soonestMs!, where.resource);
  }

  /**
   * Returns true if a store may not know that the first waiter cannot be granted a shared lock: then that waiter asks.
   */
  mayAsk({ resource, id }: LockOwner): boolean {
    const mode = this.model.holdersOf(resource)[0]?.mode;
    return this.pace.hasRoughReplies && (mode === 'read' || mode === 'semaphore') && this.model.isFirst(resource, id);
  }

  sameState(state: LockState, expected: LockState): void {
    this.#checkState(state);
    const plain = ({ resource, mode, permits, waiters }: LockState) => {
      return { resource, mode, permits, waiters: waiters.map((waiter) => without(waiter, 'placeMs')) };
    };
    assert.deepEqual(plain(state), plain(expected));
    untimed(state);
    this.#sameTtl(state.ttlMs, expected.ttlMs);
    this.#sameHolders(state.holders, expected.holders);
  }

  /** No history has more holders than an answer names. */
  #sameSeen(seen: Holders, expected: Holders): void {
    assert.equal(seen.holderCount, expected.holderCount);
    for (const { heldMs } of seen.holders) assert.ok(heldMs >= 0 && heldMs < MAX_HISTORY_MS, `held for ${heldMs} ms`);
    this.#sameHolders(seen.holders, expected.holders);
  }

  #sameHolders(holders: readonly Holder[], expected: readonly Holder[]): void {
    assert.equal(holders.length, expected.length);
    // Holders that share a token are in any order.
    const order = (some: readonly Holder[]) =>
      some.toSorted(
        (a, b) => a.fencingToken - b.fencingToken || a.instanceId.localeCompare(b.instanceId) || a.ttlMs - b.ttlMs,
      );
    const theirs = order(expected);
    for (const [i, { fencingToken, ttlMs, leaseMs, heldMs: _, ...holder }] of order(holders).entries()) {
      const { fencingToken: token, ttlMs: expectedTtlMs, leaseMs: expectedMs, heldMs: __, ...rest } = theirs[i]!;
      // For how long it is held is not in the model.
      assert.deepEqual(holder, rest);
      this.tokens.note(token, fencingToken);
      this.#sameTtl(ttlMs, expectedTtlMs);
      this.#sameTtl(leaseMs, expectedMs);
    }
  }

  /** Checks that hold for every history, whatever the model says. */
  #checkState({ resource, mode, holders, permits }: LockState): void {
    const isShared = mode === 'read' || mode === 'semaphore';
    assert.ok(holders.length <= 1 || isShared, `${resource} has ${holders.length} holders in ${mode} mode`);
    assert.equal(holders.length === 0, mode === null);
    const tokens = holders.map(({ fencingToken }) => fencingToken);
    assert.deepEqual(
      tokens,
      tokens.toSorted((a, b) => a - b),
      'holders stand in the order of their tokens',
    );
    const used = holders.reduce((sum, holder) => sum + (holder.permits ?? 0), 0);
    if (permits) {
      const { total } = permits;
      assert.equal(permits.available, Math.max(0, total - used));
      const before = this.#permits.get(resource);
      // One step may grant to some, and then, by the request of the next one, make the number of permits smaller.
      const isSound = used <= Math.max(total, before?.used ?? 0) || before?.total !== total;
      assert.ok(isSound, `${used} of ${total} permits are held`);
      this.#permits.set(resource, { used, total });
    } else this.#permits.delete(resource);
  }

  #sameReplyTtl(ttlMs: number, expected: number, resource: string): void {
    const mode = this.model.holdersOf(resource)[0]?.mode;
    const isRough = this.pace.hasRoughReplies && (mode === 'read' || mode === 'semaphore');
    if (!isRough) return this.#sameTtl(ttlMs, expected);
    const isSound = mode === 'read' ? ttlMs >= expected - this.pace.slackMs : ttlMs >= 1 && ttlMs <= expected;
    assert.ok(isSound, `${ttlMs} ms are left, not about ${expected}`);
  }

  /** A store may know no more than that the lease of no reader ends before. */
  #sameSoonest(soonestMs: number, expected: number, resource: string): void {
    const isRough = this.pace.hasRoughReplies && this.model.holdersOf(resource)[0]?.mode === 'read';
    if (!isRough) return this.#sameTtl(soonestMs, expected);
    assert.ok(soonestMs >= 1 && soonestMs <= expected, `${soonestMs} ms until the first end, not about ${expected}`);
  }

  #sameTtl(ttlMs: number, expected: number): void {
    assert.ok(ttlMs <= expected && ttlMs >= expected - this.pace.slackMs, `${ttlMs} ms are left, not ${expected}`);
  }
}
