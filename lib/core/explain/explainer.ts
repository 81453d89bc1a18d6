import { ACQUIRE_MODES, type AcquireMode } from '../api/lock-mode.js';
import { InvalidLockOptionsError } from '../api/errors.js';
import { LEASE_LENGTH } from '../api/lock-options.js';
import { count, milliseconds, oneOf, type OptionsOf, OptionTable } from '../api/option-table.js';
import { checkResource } from '../api/resource.js';
import type { Hold } from '../holding/hold.js';
import { validUntil } from '../holding/store-lease.js';
import type { LeaseDeps } from '../lease/lease-deps.js';
import { isKeptByTransaction } from '../lease/transaction-leases.js';
import type { LockState } from '../store/lock-state.js';
import type { Clock } from '../util/clock.js';
import { EarlierLook } from './earlier-look.js';
import { explainState } from './explain-state.js';
import type { LockExplanation } from './explanation.js';
import type { OwnHold, OwnPart } from './own-part.js';

/** What `locks.explain()` takes: what you know of the calls for the resource. */
export interface ExplainOptions {
  /**
   * The `leaseMs` that the calls for the resource ask for. Redis does not keep it, and with it the explanation can tell
   * when the lease was last renewed.
   *
   * @allowed 50 ms to 24 h
   * @default what waiting calls of this process ask for, or the module's `leaseMs`
   */
  leaseMs?: number;
  /**
   * Looks a second time after this time, where another process holds the resource or waits for it. Two looks show whether a
   * process lives: it renews its lease, or keeps its place. A holder does so at a third of its lease. The call takes so
   * much longer.
   *
   * @allowed 100 ms to 1 h
   * @default none: one look
   */
  lookAgainMs?: number;
  /**
   * The mode that a refused call asked for, to see whether it fits.
   *
   * @default none
   */
  mode?: AcquireMode;
  /**
   * How many permits a refused call asked for, to see whether there are that many.
   *
   * @allowed 1 and more
   * @default none
   */
  permits?: number;
}

export const EXPLAIN_OPTIONS = new OptionTable({
  leaseMs: LEASE_LENGTH,
  lookAgainMs: milliseconds(100, 3_600_000),
  mode: oneOf(ACQUIRE_MODES),
  permits: count(1, 'permits'),
} satisfies OptionsOf<ExplainOptions>);

/** Explains in sentences why a call cannot get a resource. */
export class Explainer {
  constructor(
    private readonly deps: LeaseDeps,
    private readonly inspect: (resource: string) => Promise<LockState>,
  ) {}

  async explain(resource: string, options: ExplainOptions = {}): Promise<LockExplanation> {
    const name = checkResource(resource, 'explain');
    EXPLAIN_OPTIONS.check('explain', options);
    if (options.mode !== undefined && options.permits !== undefined) {
      throw new InvalidLockOptionsError(
        'permits are for a semaphore, which has no mode: state one of the two.',
        'permits',
      );
    }
    const { clock, store } = this.deps;
    const { lookAgainMs } = options;
    const beganAt = clock.now();
    const state = await this.inspect(name);
    const isOfOthers = [...state.holders, ...state.waiters].some(({ instanceId }) => instanceId !== store.instanceId);
    if (lookAgainMs === undefined || !isOfOthers) return explainState(state, this.#ownPart(name), options);
    const seenAt = clock.now();
    await pause(clock, lookAgainMs);
    const pausedMs = clock.now() - seenAt;
    const again = await this.inspect(name);
    const earlier = new EarlierLook(state, pausedMs, clock.now() - beganAt);
    return explainState(again, this.#ownPart(name), options, earlier);
  }

  #ownPart(resource: string): OwnPart {
    const { store, clock, localQueues, watchdog, defaults } = this.deps;
    const waiting = localQueues.waitingFor(resource);
    return {
      instanceId: store.instanceId,
      holds: watchdog.holdersOf(resource).map((holder) => this.#ownHold(holder as Hold)),
      waiting: waiting?.calls ?? 0,
      longestWaitMs: waiting ? clock.now() - waiting.since : 0,
      wanted: localQueues.firstWaiting(resource),
      defaultLeaseMs: defaults.leaseMs,
    };
  }

  #ownHold(hold: Hold): OwnHold {
    const { clock, context, observers } = this.deps;
    const { storeLease, leaseMs, owner, options } = hold;
    const now = clock.now();
    return {
      fencingToken: hold.fencingToken,
      group: observers.groups.of(owner.resource, options.group),
      heldMs: now - hold.acquiredAt,
      renewedMsAgo: Math.max(0, now - (storeLease.deadline - validUntil(0, leaseMs))),
      isRenewed: hold.renewable,
      leaseMs,
      isOfThisCall: context.has(hold),
      isKeptByTransaction: isKeptByTransaction(hold),
    };
  }
}

/** It keeps no process alive that has nothing else to do. */
function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(resolve, ms, { background: true }));
}
