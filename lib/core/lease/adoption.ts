import { exhausted, unavailable } from '../acquiring/acquire-errors.js';
import type { LeaseFactory } from './lease-factory.js';
import { withTimeout } from '../store/ask.js';
import { AttemptLog, grantedTooLate, failurePause } from '../store/attempts.js';
import { CompositeLease } from './composite-lease.js';
import { LockShutdownError } from '../api/errors.js';
import { LeaseLostError } from '../api/lease-errors.js';
import type { SingleLease } from './single-lease.js';
import type { LocalQueueDeps } from '../acquiring/local-queue.js';
import type { LockOptions, ResolvedLockOptions } from '../api/lock-options.js';
import { createContender } from '../store/owner-id.js';
import { pause } from '../util/promises.js';
import { StoreLease } from '../holding/store-lease.js';
import type { LeaseTransfer } from './transfer-text.js';
import { validUntil } from '../store/validity.js';

/** What `locks.adopt()` takes. Whatever is left out is the module's default. */
export interface AdoptOptions extends Pick<
  LockOptions,
  'waitMs' | 'watchdog' | 'maxHoldMs' | 'attemptTimeoutMs' | 'backgroundRelease'
> {
  /**
   * How long Redis keeps the lock without a renewal.
   *
   * @allowed 50 ms to 24 h
   * @default that of the transferred lease
   */
  leaseMs?: number;
}

export const ADOPT_OPTION_NAMES = [
  'leaseMs',
  'waitMs',
  'watchdog',
  'maxHoldMs',
  'attemptTimeoutMs',
  'backgroundRelease',
] as const satisfies readonly (keyof AdoptOptions)[];

const NOT_ADOPTED =
  'it waited to be adopted for longer than the leaseMs of transfer(), or it was adopted and has ended since. Give a longer leaseMs, or let ' +
  'the job acquire the lock itself';

/** Takes over leases that another process handed on. */
export class Adoption {
  constructor(
    private readonly deps: LocalQueueDeps,
    private readonly leaseFactory: LeaseFactory,
  ) {}

  /**
   * All of them or none.
   *
   * @throws LeaseLostError when one is not there to be adopted any more
   * @throws LockUnavailableError when Redis does not answer within `waitMs`
   * @throws LockShutdownError when the application shuts down
   */
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

  /** The same command again and again until it is answered: it gives the lock to one and the same id each time. */
  async #adoptOne(part: LeaseTransfer, given: ResolvedLockOptions): Promise<SingleLease> {
    const { store, clock, alarms, random, orphanReleases, closing } = this.deps;
    const { resource, mode, permits } = part;
    const options = { ...given, mode, permits };
    const next = createContender(resource, options, this.deps);
    const startedAt = clock.now();
    const giveUpAt = startedAt + options.waitMs;
    const log = new AttemptLog();
    let isOver = false;
    let lease: SingleLease | undefined;
    const isWanted = () => !isOver || (lease?.isHeld() ?? false);
    try {
      for (;;) {
        if (closing.aborted) throw new LockShutdownError(resource);
        const sentAt = clock.now();
        const patience = options.waitMs === 0 ? Infinity : giveUpAt - sentAt;
        log.sent(sentAt);
        const command = store.transfer(part, { to: next.id, leaseMs: options.leaseMs });
        const answer = await withTimeout(alarms, command, Math.min(options.attemptTimeoutMs, patience), closing);
        if (answer.outcome === 'answered' && answer.value === null) {
          const leftMs = options.waitMs === 0 ? Infinity : Math.max(0, giveUpAt - clock.now());
          throw await this.#notThere(part, Math.min(options.attemptTimeoutMs, leftMs));
        }
        if (answer.outcome === 'answered' && !closing.aborted && clock.now() < validUntil(sentAt, options.leaseMs)) {
          const storeLease = new StoreLease(next, answer.value!, sentAt, options, clock);
          const grant = { storeLease, attempts: log.attempts, waitedMs: clock.now() - startedAt };
          return (lease = this.leaseFactory.hold(grant, options));
        }
        if (answer.outcome === 'failed') log.failed(answer.error);
        else {
          if (answer.outcome !== 'timeout') log.unanswered(grantedTooLate());
          else if (patience < options.attemptTimeoutMs) log.cutShort(clock.now(), options.attemptTimeoutMs);
          else log.unanswered(answer.error);
          // It may be executed after others that were sent later.
          orphanReleases.refuseLateGrant(command.then(asReply), next, options, isWanted);
        }
        if (answer.outcome === 'failed' && answer.error.failure === 'refused') throw unavailable(resource, log);
        if (clock.now() >= giveUpAt) throw exhausted(resource, log);
        await pause(clock, Math.min(failurePause(log, random), giveUpAt - clock.now()), closing);
        if (clock.now() >= giveUpAt) throw exhausted(resource, log);
      }
    } finally {
      isOver = true;
      // Nobody knows that it is held, if it is.
      if (!lease && log.isAmbiguous) orphanReleases.start(next, options);
    }
  }

  /** A look at who holds the resource, within the wait, says whether the text was delivered twice, or too late. */
  async #notThere({ resource, fencingToken }: LeaseTransfer, patienceMs: number): Promise<LeaseLostError> {
    const { store, alarms, closing } = this.deps;
    const answer = await withTimeout(alarms, store.inspect(resource), patienceMs, closing);
    const holders = answer.outcome === 'answered' ? answer.value.holders : [];
    // It keeps its token with whoever adopts it.
    const isAdopted = holders.some((holder) => holder.fencingToken === fencingToken);
    if (isAdopted) return new LeaseLostError(resource, 'adopted', fencingToken);
    return new LeaseLostError(resource, 'expired', fencingToken, NOT_ADOPTED);
  }
}

function asReply(token: number | null): { status: string } {
  return { status: token === null ? 'busy' : 'granted' };
}
