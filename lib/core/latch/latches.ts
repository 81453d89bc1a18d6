import { unavailable, waitedForStore } from '../acquiring/acquire-errors.js';
import { completed } from '../acquiring/failed-calls.js';
import { lookOnce, PLACE_MS, SharedWait, SharedWaits, type WaitDeps } from '../acquiring/shared-wait.js';
import { LockModeMismatchError, LockShutdownError, LockTimeoutError, quoteResource } from '../api/errors.js';
import { checkIsKept, checkResource, MAX_RESOURCE_BYTES } from '../api/resource.js';
import {
  abortSignal,
  checked,
  checkInteger,
  milliseconds,
  type OptionsOf,
  OptionTable,
  patience,
  wrongValue,
} from '../api/validation.js';
import type { Runtime } from '../holding/runtime.js';
import { AttemptLog, failurePause, givesUpAt, heartbeatPause } from '../places/asking.js';
import { ask, askUntil } from '../store/ask.js';
import type { LatchSpec, LatchState, LatchStore } from '../store/latch-store.js';
import { NO_HOLDERS } from '../api/holder.js';
import { formatDuration } from '../util/durations.js';

/** How a latch is made. */
export interface LatchOptions {
  /**
   * How long the latch lives in Redis from its creation. The first call that counts down or waits creates it, and its
   * value counts.
   *
   * @allowed 1 s to 720 h
   * @default 86400000
   */
  ttlMs?: number;
}

export interface CountDownOptions {
  /**
   * What is counted. One id counts once for a latch, whichever process sends it, so a job that runs again may count
   * again.
   *
   * @allowed a non-empty string of at most 512 bytes
   * @default a new one for each call
   */
  id?: string;
}

export interface LatchWaitOptions {
  /**
   * How long to wait. With 0, the call only looks, and does not create the latch. With `Infinity`, it never gives up.
   *
   * @allowed 0 ms and more, or `Infinity`
   * @default that of the module
   */
  waitMs?: number;
  /** Ends the wait with `LockAbortedError` when it aborts. @default none */
  signal?: AbortSignal;
}

/**
 * Opens when it has been counted down `count` times, by any processes, and stays open until its TTL is over.
 *
 * @see CountDownLatch of java.util.concurrent, the model of this one
 */
export interface CountdownLatch {
  readonly name: string;
  readonly count: number;
  /**
   * Counts down by one, and resolves to how many count-downs are missing. A call counts once, however often its command is
   * executed. Counting down an open latch changes nothing. While Redis cannot be reached, the call tries again for
   * `unavailableMs` and `waitMs` of the module.
   *
   * @throws LockModeMismatchError when the latch is in use with another count
   * @throws LockUnavailableError when Redis cannot be reached within `unavailableMs` and `waitMs` of the module, or
   * refuses. The call may have counted: to try again, pass the same `id`
   * @throws LockShutdownError when the same happens while the application shuts down
   * @throws InvalidLockOptionsError when an option cannot be right; nothing was sent
   */
  countDown(options?: CountDownOptions): Promise<number>;
  /**
   * Resolves when the latch is open; at once when it is open already.
   *
   * @throws LockTimeoutError when it is not open after `waitMs`
   * @throws LockModeMismatchError when the latch is in use with another count
   * @throws LockUnavailableError when Redis cannot be reached within `waitMs`, or `unavailableMs` of the module, or
   * refuses
   * @throws LockAbortedError when `signal` aborts
   * @throws LockShutdownError when the application shuts down
   * @throws InvalidLockOptionsError when an option cannot be right; nothing was sent
   */
  wait(options?: LatchWaitOptions): Promise<void>;
  /**
   * How many count-downs are missing now; 0 means open. For a latch that was never used, that is `count`, and the call does not
   * create it.
   *
   * @throws LockModeMismatchError when the latch is in use with another count
   * @throws LockUnavailableError when Redis cannot be reached, or refuses
   */
  remaining(): Promise<number>;
}

const MAX_COUNT = 1_000_000;
const HOUR_MS = 60 * 60 * 1000;

export const LATCH_OPTIONS = new OptionTable({
  ttlMs: milliseconds(1_000, 30 * 24 * HOUR_MS).default(24 * HOUR_MS),
} satisfies OptionsOf<LatchOptions>);

export const COUNT_DOWN_OPTIONS = new OptionTable({
  id: checked<string>(checkId),
} satisfies OptionsOf<CountDownOptions>);

export const LATCH_WAIT_OPTIONS = new OptionTable({
  waitMs: patience(),
  signal: abortSignal(),
} satisfies OptionsOf<LatchWaitOptions>);

export function checkLatch(name: unknown, count: unknown, options: LatchOptions = {}): LatchSpec {
  const checkedName = checkResource(name, 'latch');
  checkInteger('count', count, 1, MAX_COUNT, 'count-downs');
  LATCH_OPTIONS.check('The options of latch', options);
  return { name: checkedName, count: count as number, ttlMs: options.ttlMs ?? LATCH_OPTIONS.defaults.ttlMs };
}

function checkId(option: string, id: unknown): void {
  const isUsable =
    typeof id === 'string' && id !== '' && Buffer.byteLength(id) <= MAX_RESOURCE_BYTES && id.isWellFormed();
  if (isUsable) return;
  throw wrongValue(option, `a non-empty, well-formed string of at most ${MAX_RESOURCE_BYTES} bytes`, id);
}

/** The latches of one process on one store. */
export class Latches {
  /** Callers that state different counts do not wait together: one of them is wrong. */
  readonly #waits: SharedWaits<LatchWatch>;
  readonly #deps: LatchDeps;

  constructor(runtime: Runtime, store: LatchStore) {
    this.#deps = { ...runtime, store };
    this.#waits = new SharedWaits(this.#deps);
  }

  latch(name: string, count: number, options?: LatchOptions): CountdownLatch {
    const spec = checkLatch(name, count, options);
    checkIsKept('latch', spec.name, this.#deps.store.refusal);
    return {
      name: spec.name,
      count: spec.count,
      countDown: (given) => completed(() => this.#countDown(spec, given), this.#deps),
      wait: (given) => completed(() => this.#wait(spec, given), this.#deps),
      remaining: () => completed(() => this.#remaining(spec), this.#deps),
    };
  }

  /** How many latches calls of this process wait for. */
  get size(): number {
    return this.#waits.size;
  }

  /** The message may be about an earlier latch of this name, or forged: so the store is asked. */
  opened(name: string, count: number): void {
    this.#waits.get(watchKey({ name, count }))?.look();
  }

  reconnected(): void {
    this.#waits.reconnected();
  }

  async #countDown(spec: LatchSpec, options: CountDownOptions = {}): Promise<number> {
    COUNT_DOWN_OPTIONS.check('The options of countDown', options);
    const { clock, random, alarms, defaults, closingHere, store } = this.#deps;
    const closing = closingHere();
    const id = options.id ?? random.id();
    const startedAt = clock.now();
    const log = new AttemptLog();
    const leftMs = (): number => givesUpAt(startedAt, defaults, log.awaySince) - clock.now();
    const answer = await askUntil(alarms, clock, {
      send() {
        log.sent(clock.now());
        return store.countDown(spec, id);
      },
      timeoutMs: defaults.attemptTimeoutMs,
      giveUpAt: startedAt + defaults.waitMs,
      unanswered(failure) {
        if (failure.outcome === 'failed') log.failed(failure.error);
        else if (failure.outcome === 'timeout') log.unanswered(failure.error);
        log.noteAway(store.trouble(spec.name) !== undefined, clock.now());
        return closing.aborted || leftMs() <= 0;
      },
      pauseMs: () => Math.min(failurePause(log, random), leftMs()),
      // One more attempt is sent when the shutdown begins: work that is being drained may still count.
      hurry: closing,
    });
    if (answer.outcome === 'answered') return agreed(spec, answer.value).remaining;
    if (closing.aborted) throw new LockShutdownError(spec.name);
    const waitedMs = waitedForStore({ startedAt, options: defaults }, clock.now());
    throw unavailable(spec.name, log, 'count down', waitedMs);
  }

  async #remaining(spec: LatchSpec): Promise<number> {
    const state = await ask(this.#deps, () => this.#deps.store.read(spec), 'read', spec.name);
    return agreed(spec, state).remaining;
  }

  async #wait(spec: LatchSpec, options: LatchWaitOptions = {}): Promise<void> {
    LATCH_WAIT_OPTIONS.check('The options of wait', options);
    const { waitMs = this.#deps.defaults.waitMs, signal } = options;
    if (waitMs === 0) return this.#look(spec, signal);
    const wait = { name: spec.name, waitMs, signal };
    return this.#waits.join(watchKey(spec), wait, (onEnd) => new LatchWatch(spec, this.#deps, onEnd));
  }

  async #look(spec: LatchSpec, signal: AbortSignal | undefined): Promise<void> {
    const state = await lookOnce(spec.name, this.#deps, signal, () => this.#deps.store.read(spec));
    const { remaining, ttlMs } = agreed(spec, state);
    if (remaining > 0) throw notOpened(spec, remaining, 0, 1, ttlMs);
  }
}

/** @throws LockModeMismatchError when the latch has another count than this caller states */
function agreed(spec: LatchSpec, state: LatchState): LatchState {
  if (state.count !== spec.count) throw otherCount(spec, state);
  return state;
}

function watchKey({ name, count }: Pick<LatchSpec, 'name' | 'count'>): string {
  return `${count} ${name}`;
}

type LatchDeps = WaitDeps & Pick<Runtime, 'observers'> & { readonly store: LatchStore };

/** All calls of this process that wait for one latch. */
class LatchWatch extends SharedWait<LatchState> {
  #remaining: number;

  constructor(
    readonly spec: LatchSpec,
    protected readonly deps: LatchDeps,
    onEnd: () => void,
  ) {
    super(spec.name, onEnd);
    this.#remaining = spec.count;
  }

  /** An open latch that expires stays for as long as its place, for the clients that have not seen it. */
  protected send(): Promise<LatchState> {
    return this.deps.store.wait(this.spec, PLACE_MS);
  }

  protected onReply(attempt: number, state: LatchState): void {
    if (this.isOver) return;
    if (state.count !== this.spec.count) {
      this.end((call) => call.fail(otherCount(this.spec, state)));
    } else if (state.remaining === 0) {
      // An open latch stays open: a late reply is as good.
      this.end((call) => call.succeed());
    } else {
      this.log.busy({ ttlMs: state.ttlMs });
      this.#remaining = state.remaining;
      if (this.isLatest(attempt)) this.askLater(heartbeatPause(Infinity, PLACE_MS, this.deps.random));
    }
  }

  protected inVain(waitedMs: number, attempts: number): Error {
    return notOpened(this.spec, this.#remaining, waitedMs, attempts, this.log.holderTtlMs);
  }
}

function otherCount({ name, count }: LatchSpec, state: LatchState): LockModeMismatchError {
  return new LockModeMismatchError(
    `The latch ${quoteResource(name)} already exists with count ${state.count}, not ${count}. Nothing was changed. State the same ` +
      `count everywhere, use another name, or wait until the latch expires (in ${formatDuration(state.ttlMs)}).`,
    name,
  );
}

function notOpened(
  { name, count }: LatchSpec,
  remaining: number,
  waitedMs: number,
  attempts: number,
  ttlMs: number,
): LockTimeoutError {
  return new LockTimeoutError(
    name,
    waitedMs,
    attempts,
    ttlMs,
    NO_HOLDERS,
    `The latch ${quoteResource(name)} did not open within ${formatDuration(waitedMs)}: ${remaining} of ${count} ` +
      `count-downs ${remaining === 1 ? 'is' : 'are'} missing. Raise waitMs, or find out which process has not counted down.`,
  );
}
