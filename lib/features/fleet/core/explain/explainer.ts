import { InvalidLockOptionsError } from '../../../../kernel/api/errors.js';
import { ACQUIRE_MODES, type AcquireMode } from '../../../../kernel/api/lock-mode.js';
import { Option, type OptionsOf, OptionTable } from '../../../../kernel/api/validation.js';
import { checkResource, JOB_PREFIX } from '../../../../kernel/api/resource.js';
import type { LocalHolder } from '../../../../kernel/holding/store-lease.js';
import type { KernelParts } from '../../../../kernel/lease/kernel-parts.js';
import { isKeptByTransaction } from '../../../../kernel/lease/transaction-leases.js';
import { withTimeout } from '../../../../kernel/store/ask.js';
import type { LockState } from '../../../../kernel/store/lock-state.js';
import { type JobOverlap, type LockCause, LockExplanation, type OwnPart } from './explanation.js';
import { explainHolder, isHeldHereOnly, likelyCause, silentWaiters, type WantedAccess } from './likely-cause.js';
import { describeCause, describeCycle, describeHolding, describeOverlap, describeWaiting } from './sentences.js';
import type { DeadlockedCall } from '../../../../kernel/api/busy-errors.js';
import type { FleetReport } from '../roll/lock-fleet.js';

/** Options of `locks.explain()`: facts about a call that was rejected. */
export interface ExplainOptions {
  /**
   * The mode that the rejected call requested, to check whether the resource is in use in another mode.
   *
   * @default none
   */
  mode?: AcquireMode;
  /**
   * The number of permits that the rejected call requested, to check whether the semaphore has that many.
   *
   * @allowed 1 or more
   * @default none
   */
  permits?: number;
}

export const EXPLAIN_OPTIONS = new OptionTable({
  mode: Option.oneOf(ACQUIRE_MODES),
  permits: Option.atLeast(1, 'permits'),
} satisfies OptionsOf<ExplainOptions>);

/** Only live holders may wait for others. */
const MAY_BE_DEADLOCK: readonly LockCause[] = ['inUse', 'holderSlow', 'heldByThisProcess'];
/** A roll call takes up to 300 ms, and Redis may be slow. */
const ASKED_MS = 1_000;

export class Explainer {
  constructor(
    private readonly deps: KernelParts,
    private readonly inspect: (resource: string) => Promise<LockState>,
    private readonly overlapOf: (resource: string) => Promise<JobOverlap | undefined>,
  ) {}

  /** @param lookAround asks all instances, for an operator: see {@link explainFromOutside} */
  async explain(
    resource: string,
    options: ExplainOptions = {},
    lookAround?: (state: LockState) => Promise<FleetReport | undefined>,
  ): Promise<LockExplanation> {
    const name = checkResource(resource, 'explain');
    EXPLAIN_OPTIONS.check('explain', options);
    if (options.mode !== undefined && options.permits !== undefined) {
      throw new InvalidLockOptionsError(
        'permits is for a semaphore, which has no mode: pass only one of the two.',
        'permits',
      );
    }
    const state = await this.inspect(name);
    const own = this.#ownPart(name);
    const fleet = await lookAround?.(state);
    const explainWith = (found: FoundCause = {}): LockExplanation =>
      lookAround ? explainFromOutside(state, fleet, found) : explainState(state, own, options, found);
    const seen = explainWith();
    if (seen.cause === 'inUse' && name.startsWith(JOB_PREFIX)) {
      const overlap = await this.#answerOf(this.overlapOf(name));
      return overlap ? explainWith({ overlap }) : seen;
    }
    if (!MAY_BE_DEADLOCK.includes(seen.cause) || state.mode === 'semaphore') return seen;
    if (isHeldHereOnly(state) && state.waiters.length === 0 && own.waiting === 0) return seen;
    const { deadlocks } = this.deps;
    const deadlock = deadlocks && (await this.#answerOf(deadlocks.cycleOn(name)));
    return deadlock === undefined ? seen : explainWith({ deadlock });
  }

  /** If this fails or times out, the state in Redis must do. */
  async #answerOf<T>(asked: Promise<T>): Promise<T | undefined> {
    const answer = await withTimeout(this.deps.alarms, asked, ASKED_MS);
    return answer.outcome === 'answered' ? answer.value : undefined;
  }

  #ownPart(resource: string): OwnPart {
    const { store, clock, localQueues, watchdog } = this.deps;
    const waiting = localQueues.waitingFor(resource);
    return {
      instanceId: store.instanceId,
      holds: watchdog.holdersOf(resource).map((holder) => this.#ownHold(holder)),
      waiting: waiting?.calls ?? 0,
      longestWaitMs: waiting ? clock.now() - waiting.first.startedAt : 0,
      wanted: waiting?.first.options,
    };
  }

  #ownHold(hold: LocalHolder): OwnPart['holds'][number] {
    const { clock, context, observers } = this.deps;
    const { storeLease, options } = hold;
    return {
      fencingToken: hold.fencingToken,
      group: observers.groups.of(storeLease.owner.resource, options.group),
      heldMs: clock.now() - hold.acquiredAt,
      isRenewed: hold.renewable,
      isOfThisCall: context.has(hold),
      isKeptByTransaction: isKeptByTransaction(hold),
    };
  }
}

/** A cause that a look at the resource alone does not show. */
interface FoundCause {
  readonly deadlock?: readonly DeadlockedCall[];
  readonly overlap?: JobOverlap;
}

/**
 * Explains a look at a resource for an operator, with the reports of all instances. The process that explains it is one
 * like all others, and has a name: behind a load balancer, another one explains it the next time.
 */
export function explainFromOutside(
  state: LockState,
  fleet: FleetReport | undefined,
  { deadlock, overlap }: FoundCause = {},
): LockExplanation {
  const isThisProcess = false;
  const calls = (fleet?.instances ?? []).flatMap(({ waiting }) => waiting);
  const waits = calls.filter(({ resource }) => resource === state.resource);
  const waitsElsewhereMs = waits.map(({ waitedMs }) => waitedMs);
  const nobody = { instanceId: '', holds: [], waiting: 0, longestWaitMs: 0, wanted: undefined, waitsElsewhereMs };
  const seen = { ...state, holders: state.holders.map((holder) => ({ ...holder, isThisProcess })) };
  const found = {
    ...(overlap && { overlap }),
    ...(deadlock && { deadlock: deadlock.map((call) => ({ ...call, isThisProcess })) }),
  };
  return explainState(seen, nobody, {}, found, fleet);
}

/** Explains a look at a resource, with what this process knows of its own part. */
export function explainState(
  state: LockState,
  own: OwnPart,
  wanted: WantedAccess = {},
  { deadlock, overlap }: FoundCause = {},
  fleet?: FleetReport,
): LockExplanation {
  const holders = state.holders.map((holder) => explainHolder(holder, own, fleet));
  const silent = silentWaiters(state.waiters, own);
  const cause = deadlock ? 'deadlock' : overlap ? 'overlap' : likelyCause(state, holders, own, wanted, silent);
  const sentences = [
    ...describeHolding(state, holders),
    ...describeWaiting(state, own, silent),
    ...(deadlock
      ? describeCycle(deadlock)
      : overlap
        ? describeOverlap(overlap, holders)
        : describeCause(cause, state, holders, wanted)),
  ];
  return new LockExplanation(state.resource, cause, Object.freeze(sentences), frozen(state));
}

/** The same, so that no reader changes what another one reads. */
function frozen(state: LockState): LockState {
  for (const each of [...state.holders, ...state.waiters]) Object.freeze(each);
  Object.freeze(state.holders);
  Object.freeze(state.waiters);
  if (state.permits) Object.freeze(state.permits);
  return Object.freeze(state);
}
