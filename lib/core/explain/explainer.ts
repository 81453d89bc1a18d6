import { ACQUIRE_MODES, type AcquireMode } from '../api/lock-mode.js';
import { InvalidLockOptionsError } from '../api/errors.js';
import { count, oneOf, type OptionsOf, OptionTable } from '../api/option-table.js';
import { checkResource } from '../api/resource.js';
import type { Hold } from '../holding/hold.js';
import type { LeaseDeps } from '../lease/lease-deps.js';
import { isKeptByTransaction } from '../lease/transaction-leases.js';
import type { LockState } from '../store/lock-state.js';
import { explainState } from './explain-state.js';
import type { LockExplanation } from './explanation.js';
import type { OwnHold, OwnPart } from './own-part.js';

/** What `locks.explain()` takes: what you know of a call that was refused. */
export interface ExplainOptions {
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
    return explainState(await this.inspect(name), this.#ownPart(name), options);
  }

  #ownPart(resource: string): OwnPart {
    const { store, clock, localQueues, watchdog } = this.deps;
    const waiting = localQueues.waitingFor(resource);
    return {
      instanceId: store.instanceId,
      holds: watchdog.holdersOf(resource).map((holder) => this.#ownHold(holder as Hold)),
      waiting: waiting?.calls ?? 0,
      longestWaitMs: waiting ? clock.now() - waiting.since : 0,
      wanted: localQueues.firstWaiting(resource),
    };
  }

  #ownHold(hold: Hold): OwnHold {
    const { clock, context, observers } = this.deps;
    const { owner, options } = hold;
    return {
      fencingToken: hold.fencingToken,
      group: observers.groups.of(owner.resource, options.group),
      heldMs: clock.now() - hold.acquiredAt,
      isRenewed: hold.renewable,
      isOfThisCall: context.has(hold),
      isKeptByTransaction: isKeptByTransaction(hold),
    };
  }
}
