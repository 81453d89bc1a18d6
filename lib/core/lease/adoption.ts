import { unavailable, waitedForStore } from '../acquiring/acquire-errors.js';
import type { LeaseFactory } from './lease-factory.js';
import { createOwner, withTimeout } from '../store/ask.js';
import { AttemptLog, failurePause, givesUpAt, grantedTooLate } from '../places/asking.js';
import { CompositeLease } from './composite-lease.js';
import { LockShutdownError } from '../api/errors.js';
import { type LockLabel, readLabel } from '../api/holder.js';
import { LeaseLostError } from '../api/lease-errors.js';
import type { SingleLease } from './single-lease.js';
import type { Runtime } from '../holding/runtime.js';
import {
  LEASE_LENGTH,
  LOCK_OPTIONS,
  type LockOptions,
  MIN_HOLD,
  type ResolvedLockOptions,
} from '../api/lock-options.js';
import { type OptionsOf, OptionTable, pick } from '../api/validation.js';
import { type AsyncContext, currentContext } from '../util/async-contexts.js';
import { pause } from '../util/promises.js';
import { retentionSince, StoreLease, validUntil } from '../holding/store-lease.js';
import type { LeaseTransfer } from './transfer-text.js';

/** What `locks.adopt()` takes. Options that are left out have the default of the module. */
export interface AdoptOptions extends Pick<
  LockOptions,
  'waitMs' | 'unavailableMs' | 'watchdog' | 'maxHoldMs' | 'attemptTimeoutMs' | 'backgroundRelease'
> {
  /**
   * How long Redis keeps the lock without a renewal.
   *
   * @allowed 50 ms to 24 h
   * @default the length of the transferred lease
   */
  leaseMs?: number;
  /**
   * How long the resource stays taken at least, counted from the grant to the first process.
   *
   * @allowed 0 ms to 24 h
   * @default the minimum of the transferred lease
   */
  minHoldMs?: number;
  /**
   * What other processes are told of the lease from now on.
   *
   * @allowed an object of at most 256 bytes as JSON
   * @default the label of the transferred lease
   */
  label?: LockLabel;
}

export const ADOPT_OPTIONS = new OptionTable({
  leaseMs: LEASE_LENGTH,
  ...pick(LOCK_OPTIONS.options, 'waitMs', 'unavailableMs', 'watchdog', 'maxHoldMs'),
  minHoldMs: MIN_HOLD,
  ...pick(LOCK_OPTIONS.options, 'attemptTimeoutMs', 'backgroundRelease', 'label'),
} satisfies OptionsOf<AdoptOptions>);

const NOT_ADOPTED =
  'it was not adopted within the leaseMs of transfer(), or it was adopted and has ended since. ' +
  'Pass a longer leaseMs to transfer(), or let the job acquire the lock itself';

export class Adoption {
  constructor(
    private readonly deps: Runtime,
    private readonly leaseFactory: LeaseFactory,
  ) {}

  /** Adopts all of them, or none. */
  async adopt(parts: readonly LeaseTransfer[], options: ResolvedLockOptions): Promise<SingleLease | CompositeLease> {
    const leases: SingleLease[] = [];
    try {
      for (const part of parts) leases.push(await this.#adoptOne(part, options));
      for (const lease of leases) lease.assertHeld();
      return leases.length === 1 ? leases[0]! : new CompositeLease(leases);
    } catch (error) {
      await Promise.allSettled(leases.map((lease) => lease.end()));
      throw error;
    }
  }

  #adoptOne(part: LeaseTransfer, given: ResolvedLockOptions): Promise<SingleLease> {
    const { observation } = this.deps;
    const { resource, mode, permits, minHoldMs } = part;
    const text = given.label ?? part.label;
    const options = { ...given, mode, permits, minHoldMs, ...(text !== undefined && { label: text }) };
    if (!observation.followsCall(resource)) return this.#take(part, options);
    // Outside of the trace: what the holder does later is no part of the adoption.
    const caller = currentContext();
    const from = readLabel(part.label).label?.traceparent;
    return observation.call(resource, options, 'adoption', (followed) => this.#take(part, followed, caller), from);
  }

  /** Sends the same command until it is answered. A repetition is harmless, because each names the same new owner. */
  async #take(part: LeaseTransfer, options: ResolvedLockOptions, caller?: AsyncContext): Promise<SingleLease> {
    const { store, clock, alarms, random, orphanReleases } = this.deps;
    const closing = this.deps.closingHere();
    const { resource, minHoldMs } = part;
    const next = createOwner(resource, options, this.deps);
    const startedAt = clock.now();
    const giveUpAt = startedAt + options.waitMs;
    const log = new AttemptLog();
    const leftMs = (): number => givesUpAt(startedAt, options, log.awaySince) - clock.now();
    const inVain = (): Error => {
      return unavailable(resource, log, 'acquire', waitedForStore({ startedAt, options }, clock.now()));
    };
    let isOver = false;
    let lease: SingleLease | undefined;
    const isWanted = () => !isOver || (lease?.isHeld() ?? false);
    // Also if this call gives up: the minimum is that of the process which was granted the lease.
    orphanReleases.retain(next, { retention: () => retentionSince(startedAt, minHoldMs, clock.now()) });
    try {
      for (;;) {
        if (closing.aborted) throw new LockShutdownError(resource);
        const sentAt = clock.now();
        const patience = options.waitMs === 0 ? Infinity : giveUpAt - sentAt;
        log.sent(sentAt);
        const command = store.transfer(part, { to: next.id, leaseMs: options.leaseMs, label: options.label });
        const answer = await withTimeout(alarms, command, Math.min(options.attemptTimeoutMs, patience), closing);
        if (answer.outcome === 'answered' && answer.value === null) {
          // A call that does not wait takes as long as one attempt may.
          const endsAt = options.waitMs === 0 ? startedAt + options.attemptTimeoutMs : giveUpAt;
          const leftMs = Math.max(0, endsAt - clock.now());
          throw await this.#notThere(part, Math.min(options.attemptTimeoutMs, leftMs), closing);
        }
        if (answer.outcome === 'answered' && !closing.aborted && clock.now() < validUntil(sentAt, options.leaseMs)) {
          const storeLease = new StoreLease(next, answer.value!, sentAt, options, clock);
          const grant = { storeLease, attempts: log.attempts, waitedMs: clock.now() - startedAt };
          return (lease = this.leaseFactory.hold(grant, options, caller));
        }
        log.noteAway(store.trouble(resource) !== undefined, clock.now());
        if (answer.outcome === 'failed') log.failed(answer.error);
        else {
          if (answer.outcome !== 'timeout') log.unanswered(grantedTooLate());
          else log.timedOut(answer.error, clock.now(), patience, options.attemptTimeoutMs);
          // It may still be executed, even after commands that are sent later.
          orphanReleases.refuseLateGrant(command.then(asReply), next, options, isWanted);
        }
        if (answer.outcome === 'failed' && answer.error.failure === 'refused') throw unavailable(resource, log);
        if (leftMs() <= 0) throw inVain();
        await pause(clock, Math.min(failurePause(log, random), leftMs()), closing);
        // It may be back.
        log.noteAway(store.trouble(resource) !== undefined, clock.now());
        if (leftMs() <= 0) throw inVain();
      }
    } finally {
      isOver = true;
      // It may be held, unknown to any process.
      if (!lease && log.isAmbiguous) orphanReleases.start(next, options);
    }
  }

  /** Looks up the holder, within the wait: was the text delivered twice, or too late? */
  async #notThere(
    { resource, fencingToken }: LeaseTransfer,
    patienceMs: number,
    closing: AbortSignal,
  ): Promise<LeaseLostError> {
    const { store, alarms } = this.deps;
    const answer = await withTimeout(alarms, store.inspect(resource), patienceMs, closing);
    const holders = answer.outcome === 'answered' ? answer.value.holders : [];
    // An adopted lease keeps its token.
    const isAdopted = holders.some((holder) => holder.fencingToken === fencingToken);
    if (isAdopted) return new LeaseLostError(resource, 'adopted', fencingToken);
    return new LeaseLostError(resource, 'expired', fencingToken, NOT_ADOPTED);
  }
}

function asReply(token: number | null): { status: string } {
  return { status: token === null ? 'busy' : 'granted' };
}
