import { aborted, exhausted, mismatched, unavailable, waitedTooLong } from './acquire-errors.js';
import { heldByCaller, holdsNothing, liveHolds, watchForDeadlock } from './deadlocks.js';
import type { LocalQueue } from './local-queue.js';
import { AttemptLog, createOwner, givesUpAt, grantedTooLate, withTimeout } from '../store/ask.js';
import type { DeadlockAlarm } from '../deadlocks/deadlock-watch.js';
import type { Grant } from '../holding/hold.js';
import type { NestedCall } from './pending-call.js';
import { reportsWaits, LONG_WAIT_MS, noteWait, emitWaitingLong, emitWaiting, type WaitingNow } from './waits.js';
import type { Runtime } from '../holding/runtime.js';
import type { SeveralParts } from '../holding/several-parts.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { LockOwner } from '../store/lock-store.js';
import { mergeSignals } from '../util/signals.js';
import { strategyFailed } from './failed-calls.js';
import { pause } from '../util/promises.js';
import { checkPause } from '../api/retry.js';
import { StoreLease, validUntil } from '../holding/store-lease.js';
import type { DeadlockedCall } from '../api/busy-errors.js';

class Poller {
  readonly log = new AttemptLog();
  /** Unless the store becomes unreachable. */
  readonly giveUpAt: number;
  declare alarm?: DeadlockAlarm;
  declare deadlock?: readonly DeadlockedCall[];
  /** `true` if the last reply was inconclusive about the holder. */
  inconclusive = false;
  tellAt: number;
  hasWaited = false;
  isOver = false;
  storeLease: StoreLease | undefined;

  constructor(
    readonly owner: LockOwner,
    readonly options: ResolvedLockOptions,
    readonly startedAt: number,
    readonly closing: AbortSignal,
    readonly signal: AbortSignal,
    readonly several: SeveralParts | undefined,
    /** Only set if it may wait inside of work under a lease. */
    readonly nested: NestedCall | undefined,
  ) {
    this.giveUpAt = startedAt + options.waitMs;
    this.tellAt = startedAt + LONG_WAIT_MS;
  }
}

/** Acquires without queueing: asks once, or again and again by the retry strategy of the caller. */
export class Polling {
  readonly #waiting = new Set<Poller>();

  constructor(
    private readonly deps: Runtime,
    private readonly queues: ReadonlyMap<string, LocalQueue>,
  ) {}

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Yields them, without the candidates of leaderships. */
  *waits(): Generator<WaitingNow> {
    for (const call of this.#waiting) {
      const { owner, options, startedAt, nested } = call;
      yield { call, resource: owner.resource, options, startedAt, holds: liveHolds(call), origin: nested?.origin };
    }
  }

  /** @throws LockError of the kind that gives the reason */
  async acquire<T>(
    resource: string,
    options: ResolvedLockOptions,
    take: (grant: Grant) => T,
    several?: SeveralParts,
    nested?: NestedCall,
  ): Promise<T> {
    const { clock } = this.deps;
    const closing = this.deps.shutdownSignal();
    const { signal, dispose } = mergeSignals(closing, options.signal);
    const startedAt = clock.now();
    const owner = createOwner(resource, options, this.deps);
    const poller = new Poller(owner, options, startedAt, closing, signal, several, nested);
    let grant: Grant;
    try {
      if (signal.aborted) throw aborted(resource, closing, options.signal);
      const storeLease = (poller.storeLease = await this.#poll(poller));
      if (closing.aborted) {
        // Granted as the shutdown began, which counts only once the holders that it waits for.
        this.deps.orphanReleases.start(poller.owner, options);
        throw aborted(resource, closing, options.signal);
      }
      const { log, hasWaited } = poller;
      grant = { storeLease, attempts: log.attempts, waitedMs: clock.now() - startedAt, hasWaited };
    } catch (error) {
      noteWait(error, startedAt, poller.hasWaited);
      throw error;
    } finally {
      dispose();
      poller.alarm?.cancel();
      poller.isOver = true;
      // Leave no orphan lock.
      if (!poller.storeLease && poller.log.isAmbiguous) this.deps.orphanReleases.start(poller.owner, options);
    }
    return take(grant);
  }

  async #poll(poller: Poller): Promise<StoreLease> {
    const { store, clock } = this.deps;
    const { owner, options, startedAt, closing, signal, log } = poller;
    const { resource } = owner;
    const leftMs = (now: number): number => givesUpAt(startedAt, options, log.unreachableSince) - now;
    for (;;) {
      const storeLease = await this.#attempt(poller);
      if (storeLease) return storeLease;
      // Each reply skips more dead waiters, so the loop ends.
      if (poller.inconclusive && (options.waitMs === 0 || leftMs(clock.now()) > 0)) continue;
      const delayMs = this.#nextPause(poller);
      options.followed?.waits((now) => log.holders(now));
      this.#emitWaiting(poller);
      this.#waiting.add(poller);
      if (poller.alarm === undefined && !holdsNothing(poller)) watchForDeadlock(resource, poller, this.deps);
      this.deps.observers.onAnswer?.(owner.resource, log.holders());
      const why = await pause(clock, Math.min(delayMs, leftMs(clock.now())), signal);
      this.#waiting.delete(poller);
      if (why === 'aborted') throw aborted(resource, closing, options.signal);
      const now = clock.now();
      // The store may have recovered.
      if (log.unreachableSince !== undefined) log.markUnreachable(store.trouble(resource) !== undefined, now);
      if (leftMs(now) <= 0) {
        log.notice(store.trouble(resource));
        throw waitedTooLong(resource, poller, now, log, log.attempts, {
          heldByCaller: heldByCaller(resource, poller, this.queues, this.deps),
        });
      }
      if (now >= poller.tellAt) {
        poller.tellAt = Infinity;
        emitWaitingLong(this.deps, resource, options, now - startedAt, log, now);
      }
    }
  }

  #emitWaiting(poller: Poller): void {
    const { options, owner, log } = poller;
    if (poller.hasWaited || !reportsWaits(owner.resource)) return;
    poller.hasWaited = true;
    if (!this.deps.observers.wants('waiting')) return;
    emitWaiting(this.deps, owner.resource, options, log.holders(this.deps.clock.now()));
  }

  /** Sends one command and logs its outcome. @returns nothing if the resource was not granted */
  async #attempt(poller: Poller): Promise<StoreLease | undefined> {
    const { owner, options, startedAt, closing, signal, log, several } = poller;
    const { store, clock, alarms, orphanReleases, observers } = this.deps;
    const sentAt = clock.now();
    const remainingMs = options.waitMs === 0 ? Infinity : startedAt + options.waitMs - sentAt;
    log.sent(sentAt);
    poller.inconclusive = false;
    const { leaseMs } = options;
    const command = several ? several.acquire(owner, leaseMs, sentAt) : store.acquire(owner, leaseMs);
    const answer = await withTimeout(alarms, command, Math.min(options.attemptTimeoutMs, remainingMs), signal);
    if (answer.outcome === 'answered') observers.answered();
    if (answer.outcome === 'aborted' || answer.outcome === 'timeout') {
      const isWanted = () => !poller.isOver || (poller.storeLease?.holders.some((hold) => hold.checkHeld()) ?? false);
      orphanReleases.refuseLateGrant(command, owner, options, isWanted);
      command.then(
        () => observers.answered(),
        () => {},
      );
    }
    if (answer.outcome === 'aborted') {
      log.isAmbiguous = true;
      throw aborted(owner.resource, closing, options.signal);
    }
    if (answer.outcome === 'failed') {
      log.failed(answer.error);
      log.markUnreachable(store.trouble(owner.resource) !== undefined, clock.now());
      if (answer.error.failure === 'refused') throw unavailable(owner.resource, log);
    } else if (answer.outcome === 'timeout') {
      log.timedOut(answer.error, clock.now(), remainingMs, options.attemptTimeoutMs);
    } else if (answer.value.status === 'mismatch') {
      throw mismatched(owner.resource, options, answer.value.found);
    } else if (answer.value.status !== 'granted') {
      log.busy(answer.value, clock.now());
      poller.inconclusive = answer.value.status === 'busy' && answer.value.inconclusive === true;
    } else if (clock.now() < validUntil(sentAt, options.leaseMs)) {
      return new StoreLease(owner, answer.value.fencingToken, sentAt, options, clock);
    } else {
      log.unanswered(grantedTooLate());
    }
    return undefined;
  }

  /** @throws LockError when there is no further attempt */
  #nextPause({ owner, options, startedAt, log }: Poller): number {
    const { clock, random } = this.deps;
    if (options.waitMs === 0 || !options.retry) throw exhausted(owner.resource, log);
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
      throw strategyFailed(owner.resource, thrown);
    }
    if (pauseMs === null) throw exhausted(owner.resource, log);
    return pauseMs;
  }
}
