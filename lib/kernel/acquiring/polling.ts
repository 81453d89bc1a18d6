import { aborted, exhausted, mismatched, unavailable, waitedTooLong } from './acquire-errors.js';
import { heldByCaller, watchForDeadlock } from './deadlocks.js';
import { AttemptLog, createOwner, grantedTooLate, withTimeout } from '../store/ask.js';
import { grant, type PendingCall, type WaitingTogether } from './pending-call.js';
import { type ReportedWait, reportWait } from './why-waiting.js';
import type { Runtime } from '../holding/runtime.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { Holders } from '../api/holder.js';
import type { LockOwner } from '../store/lock-store.js';
import { mergeSignals } from '../util/signals.js';
import { strategyFailed } from './failed-calls.js';
import { pause } from '../util/promises.js';
import { checkPause } from '../api/retry.js';
import { StoreLease, validUntil } from '../holding/store-lease.js';

/** Acquires for a call that does not queue: asks once, or repeatedly by the retry strategy of the caller. */
export class Poller implements WaitingTogether, ReportedWait {
  readonly log = new AttemptLog();
  readonly #owner: LockOwner;
  /** `true` if the last reply was inconclusive about the holder. */
  #inconclusive = false;
  #isOver = false;
  #storeLease: StoreLease | undefined;

  /** @param pausing the calls that wait between two attempts, and for what */
  constructor(
    readonly resource: string,
    options: ResolvedLockOptions,
    private readonly deps: Runtime,
    private readonly queues: Parameters<typeof heldByCaller>[2],
    private readonly pausing: Map<PendingCall, string>,
  ) {
    this.#owner = createOwner(resource, options, deps);
  }

  join(call: PendingCall): void {
    this.#acquire(call).then(
      (storeLease) => grant(call, storeLease, this.deps.clock.now()),
      // A LockError of the kind that gives the reason.
      (error: unknown) => call.fail(error as Error),
    );
  }

  checkReachable(): void {
    const { store, clock } = this.deps;
    this.log.markUnreachable(store.trouble(this.resource) !== undefined, clock.now());
  }

  holders(now: number): Holders {
    return this.log.holders(now);
  }

  async #acquire(call: PendingCall): Promise<StoreLease> {
    const { deps, resource, log } = this;
    const { options } = call;
    const closing = call.isInWork ? deps.drained : deps.closing;
    const { signal, dispose } = mergeSignals(closing, options.signal);
    try {
      if (signal.aborted) throw aborted(resource, closing, options.signal);
      const storeLease = (this.#storeLease = await this.#poll(call, closing, signal));
      if (!closing.aborted) return storeLease;
      // Granted as the shutdown began, which counts only once the holders that it waits for.
      deps.orphanReleases.start(this.#owner, options);
      throw aborted(resource, closing, options.signal);
    } finally {
      dispose();
      this.#isOver = true;
      // Leave no orphan lock.
      if (!this.#storeLease && log.isAmbiguous) deps.orphanReleases.start(this.#owner, options);
    }
  }

  async #poll(call: PendingCall, closing: AbortSignal, signal: AbortSignal): Promise<StoreLease> {
    const { deps, resource, log, queues, pausing } = this;
    const { store, clock, observers } = deps;
    const { options } = call;
    for (;;) {
      const storeLease = await this.#attempt(call, closing, signal);
      if (storeLease) return storeLease;
      // Each reply skips more dead waiters, so the loop ends.
      if (this.#inconclusive && (options.waitMs === 0 || call.giveUpAt > clock.now())) continue;
      const delayMs = this.#nextPause(call);
      options.followed?.waits((now) => log.holders(now));
      reportWait(observers, this, call, clock.now());
      pausing.set(call, resource);
      watchForDeadlock(resource, call, deps);
      observers.onAnswer?.(resource, log.holders());
      const why = await pause(clock, Math.min(delayMs, call.giveUpAt - clock.now()), signal);
      pausing.delete(call);
      if (why === 'aborted') throw aborted(resource, closing, options.signal);
      // The store may have recovered.
      if (log.unreachableSince !== undefined) this.checkReachable();
      const now = clock.now();
      if (call.giveUpAt <= now) {
        log.notice(store.trouble(resource));
        const details = { heldByCaller: heldByCaller(resource, call, queues, deps) };
        throw waitedTooLong(resource, call, now, log, log.attempts, details);
      }
      reportWait(observers, this, call, now);
    }
  }

  /** Sends one command and logs its outcome. @returns nothing if the resource was not granted */
  async #attempt(call: PendingCall, closing: AbortSignal, signal: AbortSignal): Promise<StoreLease | undefined> {
    const { log, resource } = this;
    const owner = this.#owner;
    const { options, startedAt, several } = call;
    const { store, clock, alarms, orphanReleases, observers } = this.deps;
    const sentAt = clock.now();
    const remainingMs = options.waitMs === 0 ? Infinity : startedAt + options.waitMs - sentAt;
    log.sent(sentAt);
    call.attempts++;
    this.#inconclusive = false;
    const { leaseMs } = options;
    const command = several ? several.acquire(owner, leaseMs, sentAt) : store.acquire(owner, leaseMs);
    const answer = await withTimeout(alarms, command, Math.min(options.attemptTimeoutMs, remainingMs), signal);
    if (answer.outcome === 'answered') observers.answered();
    if (answer.outcome === 'aborted' || answer.outcome === 'timeout') {
      const isWanted = () => !this.#isOver || (this.#storeLease?.holders.some((hold) => hold.checkHeld()) ?? false);
      orphanReleases.refuseLateGrant(command, owner, options, isWanted);
      command.then(
        () => observers.answered(),
        () => {},
      );
    }
    if (answer.outcome === 'aborted') {
      log.isAmbiguous = true;
      throw aborted(resource, closing, options.signal);
    }
    if (answer.outcome === 'failed') {
      log.failed(answer.error);
      this.checkReachable();
      if (answer.error.failure === 'refused') throw unavailable(resource, log);
    } else if (answer.outcome === 'timeout') {
      log.timedOut(answer.error, clock.now(), remainingMs, options.attemptTimeoutMs);
    } else if (answer.value.status === 'mismatch') {
      throw mismatched(resource, options, answer.value.found);
    } else if (answer.value.status !== 'granted') {
      log.busy(answer.value, clock.now());
      this.#inconclusive = answer.value.status === 'busy' && answer.value.inconclusive === true;
    } else if (clock.now() < validUntil(sentAt, options.leaseMs)) {
      return new StoreLease(owner, answer.value.fencingToken, sentAt, options, clock);
    } else {
      log.unanswered(grantedTooLate());
    }
    return undefined;
  }

  /** @throws LockError when there is no further attempt */
  #nextPause({ options, startedAt }: PendingCall): number {
    const { resource, log } = this;
    const { clock, random } = this.deps;
    if (options.waitMs === 0 || !options.retry) throw exhausted(resource, log);
    let pauseMs: number | null;
    try {
      pauseMs = checkPause(
        options.retry.next({
          attempt: log.attempts,
          elapsedMs: clock.now() - startedAt,
          lastAttempt: log.last,
          holderTtlMs: log.holderTtlMs,
          random: () => random.fraction(),
        }),
      );
    } catch (thrown) {
      throw strategyFailed(resource, thrown);
    }
    if (pauseMs === null) throw exhausted(resource, log);
    return pauseMs;
  }
}
