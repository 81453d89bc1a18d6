import { unavailable, waitedForStore } from '../acquiring/acquire-errors.js';
import { completed } from '../acquiring/failed-calls.js';
import { lookOnce, PLACE_MS, SharedWait, SharedWaits, type WaitDeps } from '../acquiring/shared-wait.js';
import { LockModeMismatchError, LockShutdownError, LockTimeoutError, quoteResource } from '../api/errors.js';
import { checkIsKept } from '../api/resource.js';
import type { Runtime } from '../holding/runtime.js';
import { AttemptLog, failurePause, givesUpAt, heartbeatPause } from '../places/asking.js';
import { ask, askUntil } from '../store/ask.js';
import type { LatchSpec, LatchState, LatchStore } from '../store/latch-store.js';
import {
  checkLatch,
  COUNT_DOWN_OPTIONS,
  type CountdownLatch,
  type CountDownOptions,
  LATCH_WAIT_OPTIONS,
  type LatchOptions,
  type LatchWaitOptions,
} from './countdown-latch.js';
import { NO_HOLDERS } from '../api/holder.js';
import { formatDuration } from '../util/durations.js';

/** The latches of one process on one store. */
export class Latches {
  /** Callers that state different counts do not wait together: one of them is wrong. */
  readonly #waits: SharedWaits<LatchWatch>;
  readonly #deps: LatchDeps;

  constructor(
    { clock, random, alarms, defaults, closing, drained, closingHere, observers }: Runtime,
    store: LatchStore,
  ) {
    this.#deps = { clock, random, alarms, defaults, closing, drained, closingHere, observers, store };
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
    const wait = { name: spec.name, waitMs, signal };
    this.#waits.checkMayWait(wait);
    if (waitMs === 0) return this.#look(spec, signal);
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
