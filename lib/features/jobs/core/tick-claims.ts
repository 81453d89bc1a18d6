import type { JobStore, RunEnd } from './job-store.js';
import { askUntil } from '../../../kernel/store/ask-until.js';
import { LockUnavailableError } from '../../../kernel/api/errors.js';
import type { KernelParts } from '../../../kernel/lease/kernel-parts.js';
import { LockStoreError } from '../../../kernel/store/store-error.js';
import type { LockOwner } from '../../../kernel/store/lock-store.js';
import type { ClaimMetadata, TickClaim, TickReply } from './job-claims.js';
import { type StoreRelease, validUntil } from '../../../kernel/holding/store-lease.js';
import type { LockObservers } from '../../../kernel/events/observers.js';
import type { SingleLease } from '../../../kernel/lease/single-lease.js';
import { pause } from '../../../kernel/util/promises.js';
import {
  type resolveSingletonRun,
  type RunPlan,
  SINGLETON_RUN_OPTIONS,
  type SingletonRunOptions,
} from './singleton-run-options.js';
import { escapeLines } from '../../../kernel/util/quoted.js';

/** The pauses between two questions to the store: after a failure, and while an earlier run holds the lock. */
const RETRY_PAUSE_MS = 50;
const OVERLAP_PAUSE_MS = 250;

/** The attempt of this instance to run one tick. */
export interface TickAttempt extends ReturnType<typeof resolveSingletonRun> {
  readonly owner: LockOwner;
  readonly plan: RunPlan;
  /** Set if the store has job records. */
  readonly note: ClaimMetadata | undefined;
  readonly startedAt: number;
  /** Aborts when the shutdown ends the attempt. */
  readonly closing: AbortSignal;
  hasBegun: boolean;
}

/** A reply, and when the command it answers was sent. */
interface Claimed {
  readonly reply: TickReply;
  readonly sentAt: number;
}

/** Asks the store for ticks: the claims of this process, and that a tick has run. */
export class TickClaims {
  /** By job: aborts when the newest attempt has its answer, or gives up. */
  readonly #claiming = new Map<string, AbortSignal>();

  constructor(
    private readonly deps: KernelParts,
    private readonly jobs: JobStore,
  ) {}

  /** Returns the time until the next question is worth its cost: at the latest the end of a dead runner's lease. */
  retryDelayMs({ lock }: TickAttempt, reply: { status: 'claimed' | 'taken'; ttlMs: number }): number {
    const longest = reply.status === 'claimed' ? OVERLAP_PAUSE_MS : lock.leaseMs / 3;
    return Math.min(longest, reply.ttlMs + 1 + RETRY_PAUSE_MS * this.deps.random.fraction());
  }

  /**
   * After an outage, many ticks of a job may be unclaimed, and the newest one would make the others late. So this
   * process claims them in the order in which they came. No tick waits longer for its turn than its own `waitMs`, so
   * each is tried at least once.
   */
  async inTurn(attempt: TickAttempt): Promise<Claimed | undefined> {
    const { lock, target } = attempt;
    const before = this.#claiming.get(target.resource);
    const over = new AbortController();
    this.#claiming.set(target.resource, over.signal);
    try {
      // At a shutdown, the attempts before this one end at once.
      if (before) await pause(this.deps.clock, lock.waitMs, before);
      const claimed = await this.#claimAfterMissed(attempt);
      if (claimed && claimed.reply.status !== 'early') attempt.plan.onAccounted?.();
      return claimed;
    } finally {
      over.abort();
      if (this.#claiming.get(target.resource) === over.signal) this.#claiming.delete(target.resource);
    }
  }

  /**
   * Claims a tick. If ticks before it were missed, they are accounted first: a claim makes them too late. As long as
   * they cannot be accounted, the tick is not claimed: within `waitMs` it is tried again, and then the tick is missed
   * as well. So no missed tick stays untold.
   */
  async #claimAfterMissed(attempt: TickAttempt): Promise<Claimed | undefined> {
    const { plan, startedAt, lock, closing } = attempt;
    const { clock } = this.deps;
    let { note } = attempt;
    let before: number | undefined;
    for (;;) {
      const claimed = await this.claim({ ...attempt, note }, 'nothing', startedAt);
      if (claimed?.reply.status !== 'gap') return claimed;
      const { last, lateMs } = claimed.reply;
      // The clock of this process is ahead of the store's. The ticks before it are not missed yet.
      if (lateMs < 0) {
        if ((await pause(clock, -lateMs, closing)) === 'aborted') return this.forget(attempt);
        continue;
      }
      const gap = last === before ? NOT_ACCOUNTED : await accountGap(plan, last);
      if (gap === 'nothing') note = note && { ...note, previous: undefined };
      if (gap === 'accounted') before = last;
      if (gap === 'nothing' || gap === 'accounted') continue;
      before = undefined;
      if (clock.now() + RETRY_PAUSE_MS < startedAt + lock.waitMs) {
        if ((await pause(clock, RETRY_PAUSE_MS, closing)) === 'aborted') return this.forget(attempt);
        continue;
      }
      this.forget(attempt);
      if (closing.aborted) return undefined;
      throw this.#unclaimed(attempt, 'failed', gap);
    }
  }

  /** Resolves to `undefined` when the application shuts down before that. @param since the start of `waitMs` */
  async claim(
    attempt: TickAttempt,
    takeOver: TickClaim['takeOver'],
    since = this.deps.clock.now(),
  ): Promise<Claimed | undefined> {
    const { deps, jobs } = this;
    const { clock } = deps;
    const { lock, target, owner, claimTtlMs, options, due, note, closing } = attempt;
    const { overlap, maxReruns = SINGLETON_RUN_OPTIONS.defaults.maxReruns } = options;
    const claim: TickClaim = { owner, leaseMs: lock.leaseMs, claimTtlMs, overlap, takeOver, maxReruns, due, note };
    if (closing.aborted) return undefined;
    let sentAt = 0;
    const answer = await askUntil(deps.alarms, clock, {
      send() {
        sentAt = clock.now();
        return jobs.claim(target, claim);
      },
      timeoutMs: lock.attemptTimeoutMs,
      // The last attempt begins at the end of `waitMs`, or less than a pause later.
      giveUpAt: since + lock.waitMs + RETRY_PAUSE_MS,
      unanswered({ outcome }, command) {
        if (outcome !== 'failed') deps.orphanReleases.refuseLateGrant(command, owner, lock);
        return false;
      },
      // A grant that arrives after its lease is asked for again: the claim still has this owner id.
      isFinal: ({ status }) => status !== 'granted' || clock.now() < validUntil(sentAt, lock.leaseMs),
      pauseMs: () => RETRY_PAUSE_MS,
      signal: closing,
    });
    if (answer.outcome === 'answered') {
      deps.observers.answered();
      return { reply: answer.value, sentAt };
    }
    this.forget(attempt);
    if (answer.outcome === 'aborted') return undefined;
    throw this.#unclaimed(attempt, answer.outcome, answer.error);
  }

  /**
   * The tick may have been granted without an answer, or may be granted later. It does not run here: the claim and the
   * lock of the job are given up, so that any instance may have the tick.
   */
  forget({ owner, lock, target, claimTtlMs }: TickAttempt): undefined {
    const claim = { tick: target.tick, to: 'returned', claimTtlMs } as const;
    this.deps.orphanReleases.start(owner, lock, () => this.jobs.end(owner, { claim }));
  }

  /** Returns the report on the run of a tick, if the store has job records. It also releases the lock of the job. */
  endingOf({ owner, note, options }: TickAttempt, fencingToken: number): RunEnding | undefined {
    return note && new RunEnding(this.jobs, owner, fencingToken, options.historyMessages ?? false);
  }

  #unclaimed({ options, target }: TickAttempt, outcome: 'timeout' | 'failed', cause: LockStoreError): Error {
    const error = new LockUnavailableError(target.resource, `claim tick ${options.tick} of`, outcome, cause);
    unclaimed.add(error);
    this.deps.observers.emit({ type: 'tickFailed', ...describeTick(this.deps.observers, options), error });
    return error;
  }

  /** Called before the lock is released: after that, an unfinished tick counts as one whose runner died. */
  async finish({ options, target, owner, lock, claimTtlMs }: TickAttempt, { hold }: SingleLease): Promise<void> {
    if (options.onCrash === 'skip') return;
    const { alarms, clock, closing, orphanReleases } = this.deps;
    const claim = { tick: target.tick, to: 'finished', claimTtlMs } as const;
    await askUntil(alarms, clock, {
      send: () => this.jobs.end(owner, { claim }),
      // Leaves time for more than one try within the lease.
      timeoutMs: Math.min(lock.attemptTimeoutMs, lock.leaseMs / 3),
      giveUpAt: clock.now() + lock.leaseMs + RETRY_PAUSE_MS,
      // The shutdown did not wait for this run: the connections are closed.
      unanswered: () => closing.aborted && !hold.checkHeld(),
      pauseMs: () => RETRY_PAUSE_MS,
      refused: orphanReleases.refused,
    });
  }
}

const unclaimed = new WeakSet<object>();

/** Returns true for the error of a tick that could not be claimed, which observers already have. */
export function isUnclaimed(error: unknown): boolean {
  return unclaimed.has(Object(error) as object);
}

export function describeTick({ service, groups }: LockObservers, { job, tick }: SingletonRunOptions) {
  return { service, group: groups.of(job, job), job, tick };
}

/** The store confirmed that it has accounted them, and has not. */
const NOT_ACCOUNTED = new LockStoreError('unknown', 'the missed ticks before this one have not been recorded');

/** Accounts the ticks that were missed before a tick. Resolves to why it failed, if the store has not done it. */
async function accountGap({ onGap }: RunPlan, last: number): Promise<'accounted' | 'nothing' | LockStoreError> {
  try {
    return (await onGap?.(last)) ? 'accounted' : 'nothing';
  } catch (error) {
    const cause = error instanceof LockUnavailableError ? error.cause : error;
    // Ticks that cannot be computed would stop the job for good.
    return cause instanceof LockStoreError ? cause : 'nothing';
  }
}

const MAX_BYTES = { name: 100, code: 100, message: 200 };

/** The outcome of one run so far. The command that releases the lock of the job stores it. */
class RunEnding implements StoreRelease {
  outcome: RunEnd['outcome'] = 'none';
  #error: Pick<RunEnd, 'errorName' | 'errorCode' | 'errorMessage'> | undefined;

  constructor(
    private readonly jobs: JobStore,
    private readonly owner: LockOwner,
    private readonly fencingToken: number,
    private readonly withMessage: boolean,
  ) {}

  failedWith(error: unknown): void {
    this.#error = describe(error, this.withMessage);
  }

  release(lazily?: boolean): Promise<boolean> {
    const { owner, fencingToken } = this;
    return this.jobs.end(owner, { run: { fencingToken, outcome: this.outcome, ...this.#error } }, lazily);
  }
}

/** It is the user's, and may be anything. */
function describe(error: unknown, withMessage: boolean): Pick<RunEnd, 'errorName' | 'errorCode' | 'errorMessage'> {
  return {
    errorName: read(() => (error instanceof Error ? error.name : typeof error), MAX_BYTES.name),
    errorCode: read(() => (error as { readonly code?: unknown } | null | undefined)?.code, MAX_BYTES.code),
    ...(withMessage && {
      errorMessage: read(() => (error instanceof Error ? error.message : error), MAX_BYTES.message),
    }),
  };
}

function read(property: () => unknown, bytes: number): string | undefined {
  try {
    const value = property();
    if (typeof value !== 'string' && typeof value !== 'number') return undefined;
    const text = String(value);
    return text === '' ? undefined : cutToBytes(escapeLines(text.slice(0, 2 * bytes)).replaceAll('\n', '\\n'), bytes);
  } catch {
    // A getter that throws.
    return undefined;
  }
}

/** Cuts a text to so many bytes of UTF-8, and not inside of a character. */
function cutToBytes(text: string, bytes: number): string {
  let length = 0;
  let cut = '';
  for (const character of text) {
    length += Buffer.byteLength(character);
    if (length > bytes) break;
    cut += character;
  }
  return cut;
}
