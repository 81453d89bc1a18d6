import { InvalidLockOptionsError } from './errors.js';
import type { Holder, Holders, LockLabel } from './holder.js';
import { checkLabel, encodeLabel } from './given-label.js';
import { checkGroup } from './resource.js';
import { ACQUIRE_MODES, type AcquireMode, type LockMode } from './lock-mode.js';
import type { RetryStrategy } from './retry.js';
import { Option, type OptionsOf, OptionTable, pick, wrongValue } from './validation.js';

export { type AcquireMode, isSharedMode, LOCK_MODES, type LockMode } from './lock-mode.js';

export const MIN_LEASE_MS = 50;
export const MAX_LEASE_MS = 24 * 60 * 60 * 1000;
/**
 * The default for the run of a job. Its length costs no caller anything, and a job blocks its event loop more often.
 */
export const RUN_LEASE_MS = 30_000;

/** The place in line of a waiting call, as far as known. */
export interface PlaceInLine {
  /**
   * The number of waiting calls ahead of this one; each other process counts as one. 0 if this call is next. On a
   * quorum, only calls of this process count.
   */
  readonly ahead: number;
  /** The holder, or one of several. `undefined` if unknown. */
  readonly holder: Holder | undefined;
}

/** What a call does if its lease is lost while its work runs: see the option `onLost`. */
export type OnLost = 'throw' | 'ignore';

/** The options of one call to acquire. An omitted option takes the module's default. */
export interface LockOptions {
  /**
   * Decides which other holders the lock allows, and whether the async context that holds the lock may acquire it
   * again. `@ReadLock` and `@WriteLock` set it.
   *
   * @default 'exclusive'
   * @see docs/guide/choosing-a-mode.md
   */
  mode?: AcquireMode;
  /**
   * Time for which Redis keeps the lock without a renewal. If the holder dies, others wait for up to this long.
   *
   * @allowed 50 ms to 24 h
   * @default 15000
   * @see docs/guide/choosing-a-mode.md#how-long-should-the-ttl-of-a-lease-be
   */
  leaseMs?: number;
  /**
   * Time to wait for a resource that is held. With 0, the call fails at once with `LockBusyError`. Choose a time longer
   * than `leaseMs`: if the holder dies, its lease then expires before the call gives up. `tryAcquire` and `tryUsing`
   * default to 0, whatever the module sets.
   *
   * @allowed 0 ms or more, or `Infinity`
   * @default 18000
   */
  waitMs?: number;
  /**
   * Time to wait, within `waitMs`, for a disconnected Redis (on a quorum, for a majority) before the call fails with
   * `LockUnavailableError`. Counted from the loss of the connection, or from the start of the call if that is later.
   *
   * @allowed 0 ms or more, or `Infinity`
   * @default 2000
   * @see docs/guide/waiting.md#redis-is-down-what-do-my-requests-do
   */
  unavailableMs?: number;
  /**
   * `true` renews the lease every third of `leaseMs` until it is released. `false` makes a fixed lease that expires
   * after `leaseMs`, even if the work is still running.
   *
   * @default true
   */
  watchdog?: boolean;
  /**
   * The maximum time to hold the lock. After that, the lease isn't renewed and is lost.
   *
   * @allowed 50 ms or more
   * @default no limit
   */
  maxHoldMs?: number;
  /**
   * Keeps the resource held for at least this long after the grant, by Redis's clock, even if you release earlier,
   * unless the lease is lost. Must be at most `maxHoldMs` and, without a watchdog, at most `leaseMs`.
   *
   * @allowed 0 ms to 24 h
   * @default 0
   * @see docs/guide/waiting.md#holding-a-lock-for-a-minimum-time
   */
  minHoldMs?: number;
  /**
   * The time limit for one command to Redis. A release, or another command for a lease, is retried for this long if
   * Redis can't have run it.
   *
   * @allowed 10 ms to 60 s
   * @default 1000
   */
  attemptTimeoutMs?: number;
  /**
   * `true` serves waiting processes strictly in order of arrival, one lease each. By default, a process may pass the
   * lock on among its own calls up to 63 times in a row, for at most 10 ms.
   *
   * @default false
   * @see docs/guide/waiting.md
   */
  strictOrder?: boolean;
  /**
   * The maximum number of calls per process, and of processes, that may wait for one resource. Any further call fails
   * at once with `LockQueueFullError`.
   *
   * @allowed 1 or more
   * @default 10000
   */
  maxWaiters?: number;
  /**
   * If the call has to wait behind more calls than this, it fails at once with `LockQueueFullError`. Each other process
   * counts as one call. With 0, the call waits only if it would be next. Can't be combined with `retry`.
   *
   * @allowed 0 or more
   * @default no limit
   * @see docs/guide/waiting.md#when-the-queue-is-full
   */
  maxAhead?: number;
  /**
   * Called with the place in line while the call waits: after 50 ms, then whenever the place or the holder changes, at
   * most once a second. Runs in the async context of the call. Its errors are only logged. Can't be combined with
   * `retry`.
   *
   * @allowed a function
   * @default none
   * @see docs/guide/one-turn.md#show-a-place-in-line
   */
  onWait?: (place: PlaceInLine) => void;
  /**
   * With `true`, a call doesn't wait for Redis to confirm its release, which halves the duration of a short lock.
   * Failed releases are only logged and reported to observers, and a release right before `process.exit()` is lost.
   *
   * @default false
   * @see docs/guide/waiting.md#releasing-in-the-background
   */
  backgroundRelease?: boolean;
  /**
   * Decides what `using`, `tryUsing` and the decorators do if the lease is lost before the work settles. `'throw'`:
   * when the work has settled, they reject with its error or, if it succeeded, with a `LeaseLostError` that contains
   * the result. `'ignore'`: they resolve to the result. `lease.signal` aborts in both cases.
   *
   * @allowed `'throw'`, `'ignore'`
   * @default 'throw'
   * @see docs/guide/lock-service.md#if-the-lease-is-lost
   */
  onLost?: OnLost;
  /**
   * Decides what a call does if the resource is taken. `'wait'` waits for its turn. `'cancelHolder'` asks a
   * `cancellable` holder to stop, cancels `cancellable` calls ahead of it, and gets the resource when the holder's work
   * or lease has ended.
   *
   * @allowed `'wait'`, `'cancelHolder'`
   * @default 'wait'
   * @see docs/guide/waiting.md#only-the-newest-call-counts
   */
  onBusy?: 'wait' | 'cancelHolder';
  /**
   * `true` lets a newer call with `onBusy: 'cancelHolder'` cancel this one: a waiting call fails with
   * `LockAbortedError`, and a holder's `lease.signal` aborts with that error. Needs a single resource, mode
   * `exclusive`, and no `retry`.
   *
   * @default false
   * @see docs/guide/waiting.md#only-the-newest-call-counts
   */
  cancellable?: boolean;
  /**
   * Polls with this strategy instead of waiting in the queue: `fixedInterval`, `exponentialBackoff`, or your own.
   * Ignored with `waitMs: 0`.
   *
   * @default none
   */
  retry?: RetryStrategy;
  /**
   * When this signal aborts, the wait ends with a `LockAbortedError`. A granted lease is not affected.
   *
   * @default none
   */
  signal?: AbortSignal;
  /**
   * The name of this kind of lock in events and metrics. Never put an id into it. Decorators use `Class.method`.
   *
   * @allowed 1 to 100 letters, digits, spaces and `_ $ . - / # : ( )`
   * @default what the module option `group` returns
   * @see docs/reference/events.md#groups
   */
  group?: string;
  /**
   * Describes this call to other processes, in errors, events, `inspect` and `list`: plain JSON, such as `{ group:
   * 'Orders.pay', request: id }`. Stored in Redis as is, so leave secrets out.
   *
   * @allowed an object of at most 256 bytes as JSON
   * @default none
   * @see docs/operations/at-3-am.md#which-work-holds-the-lock
   */
  label?: LockLabel;
  /**
   * Reports a lease that has been held for longer than this, with the event `heldLong` and a warning. The default
   * applies only to `using` and decorators. `Infinity` disables the report.
   *
   * @allowed 1 ms or more, or `Infinity`
   * @default 60000
   * @see docs/operations/logs.md#a-lease-is-held-for-a-long-time
   */
  warnAfterMs?: number;
}

/** The allowed length of a lease. Defaults differ by caller. */
export const LEASE_LENGTH = Option.milliseconds(MIN_LEASE_MS, MAX_LEASE_MS);

/** Each lock option with its check and its default. */
export const LOCK_OPTIONS = new OptionTable({
  mode: Option.oneOf(ACQUIRE_MODES).default('exclusive'),
  leaseMs: LEASE_LENGTH.default(15_000),
  // A lease, and a bit: who waits for a holder that dies has the lock within 1.1 leases.
  waitMs: Option.durationOrInfinity().default(18_000),
  unavailableMs: Option.durationOrInfinity().default(2_000),
  watchdog: Option.flag().default(true),
  maxHoldMs: Option.milliseconds(MIN_LEASE_MS),
  minHoldMs: Option.milliseconds(0, MAX_LEASE_MS).default(0),
  attemptTimeoutMs: Option.milliseconds(10, 60_000).default(1_000),
  strictOrder: Option.flag().default(false),
  maxWaiters: Option.atLeast(1, 'waiters').default(10_000),
  maxAhead: Option.atLeast(0, 'calls'),
  onWait: Option.callback<(place: PlaceInLine) => void>(),
  backgroundRelease: Option.flag().default(false),
  onLost: Option.oneOf(['throw', 'ignore'] as const).default('throw'),
  onBusy: Option.oneOf(['wait', 'cancelHolder'] as const).default('wait'),
  cancellable: Option.flag().default(false),
  retry: Option.checked<RetryStrategy>(checkStrategy),
  signal: Option.abortSignal(),
  group: Option.checked<string>(checkGroup),
  label: Option.checked<LockLabel>(checkLabel),
  warnAfterMs: Option.countOrInfinity(1, 'milliseconds').default(60_000),
} satisfies OptionsOf<LockOptions>);

/** The options that a module sets for all its locks. */
export interface LockDefaults extends Required<
  Pick<
    LockOptions,
    | 'leaseMs'
    | 'waitMs'
    | 'unavailableMs'
    | 'watchdog'
    | 'attemptTimeoutMs'
    | 'strictOrder'
    | 'maxWaiters'
    | 'backgroundRelease'
    | 'warnAfterMs'
  >
> {
  /** See the module option `restartQuarantineMs`. No lease may be longer. @default no limit */
  readonly restartQuarantineMs?: number | undefined;
}

/** The defaults with what follows from them. */
export interface ResolvedDefaults extends LockDefaults {
  /** The lease of a job's run. */
  readonly runLeaseMs: number;
}

const DEFAULT_MODE = LOCK_OPTIONS.defaults.mode;

/** The module options that are defaults of its locks. */
export const DEFAULT_OPTIONS = pick(
  LOCK_OPTIONS.options,
  'leaseMs',
  'waitMs',
  'unavailableMs',
  'watchdog',
  'attemptTimeoutMs',
  'strictOrder',
  'maxWaiters',
  'backgroundRelease',
  'warnAfterMs',
);
const DEFAULTS_TABLE = new OptionTable(DEFAULT_OPTIONS);
export const LOCK_DEFAULTS: LockDefaults = DEFAULTS_TABLE.defaults;

/** Picks the checked defaults out of a module's options, and fills in the ones they leave out. */
export function resolveLockDefaults(options: Partial<ResolvedDefaults>): ResolvedDefaults {
  const { runLeaseMs = options.leaseMs ?? RUN_LEASE_MS } = options;
  return { ...DEFAULTS_TABLE.filled(options), runLeaseMs };
}

export interface ResolvedLockOptions extends Omit<LockDefaults, 'warnAfterMs'> {
  readonly mode: LockMode;
  /** Semaphores only. */
  readonly permits?: PermitRequest | undefined;
  readonly maxHoldMs: number;
  readonly minHoldMs: number;
  readonly retry: RetryStrategy | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onLost: OnLost | undefined;
  readonly maxAhead?: number | undefined;
  /** The group in events, if the call or its method sets one. */
  readonly group?: string | undefined;
  /** Only a call with this callback has this property. */
  readonly onWait?: (place: PlaceInLine) => void;
  /** As it is stored. Only a call with a label has this property: the others must not cost more for it. */
  readonly label?: string | undefined;
  readonly warnAfterMs?: number | undefined;
  /** Only set for a call that cancels older calls, or that a newer call may cancel. */
  readonly newest?: NewestFirst;
  /** The tracers' view of the call. Only a traced call has this property. */
  readonly followed?: WaitFollower;
}

/** The options of a call if only the newest one counts. */
export interface NewestFirst {
  /** `true` if it cancels older calls, see `onBusy`. */
  readonly cancels: boolean;
  /** `true` if a newer one may cancel it, see `cancellable`. */
  readonly yields: boolean;
}

/** Receives the holders that a call waits for. */
export interface WaitFollower {
  /** @param holders called at once, with the time */
  waits(holders: (now: number) => Holders, now?: number): void;
}

function checkStrategy(option: string, value: unknown): void {
  if (typeof (value as Partial<RetryStrategy> | null)?.next === 'function') return;
  throw wrongValue(option, 'a strategy with a next() method, such as fixedInterval({ intervalMs: 100 })', value);
}

/** @throws InvalidLockOptionsError if the lease is longer than the quarantine of a store that has lost its data */
export function checkLeaseLimit(leaseMs: number | undefined, restartQuarantineMs = Infinity): void {
  if (leaseMs === undefined || leaseMs <= restartQuarantineMs) return;
  throw new InvalidLockOptionsError(
    `leaseMs must be at most restartQuarantineMs (${restartQuarantineMs}), not ${leaseMs}: a Redis that has restarted without ` +
      'its data grants locks again after that time. Raise restartQuarantineMs, in all applications that share the locks.',
    'leaseMs',
  );
}

/** @throws InvalidLockOptionsError if the lease would end by itself before its minimum has passed */
export function checkMinHold({
  minHoldMs = 0,
  maxHoldMs = Infinity,
  watchdog = true,
  leaseMs = Infinity,
}: Pick<LockOptions, 'minHoldMs' | 'maxHoldMs' | 'watchdog' | 'leaseMs'>): void {
  if (minHoldMs > maxHoldMs) {
    throw new InvalidLockOptionsError(
      `minHoldMs must be at most maxHoldMs (${maxHoldMs}), not ${minHoldMs}: the lease is lost after maxHoldMs, ` +
        'and the resource is free then. Raise maxHoldMs, or lower minHoldMs.',
      'minHoldMs',
    );
  }
  if (!watchdog && minHoldMs > leaseMs) {
    throw new InvalidLockOptionsError(
      `minHoldMs must be at most leaseMs (${leaseMs}) with watchdog: false, not ${minHoldMs}: a fixed lease ends ` +
        'after leaseMs. Raise leaseMs, or lower minHoldMs.',
      'minHoldMs',
    );
  }
}

function placeOfPolling(option: 'maxAhead' | 'onWait'): InvalidLockOptionsError {
  const why = `a call that polls has no place in the queue, so no call waits before it. Leave ${option} or retry out`;
  return new InvalidLockOptionsError(`${option} cannot be used with retry: ${why}.`, option);
}

/** Returns true if only the newest call counts, for one side or the other. */
export function isNewestFirst({ onBusy, cancellable }: Pick<LockOptions, 'onBusy' | 'cancellable'>): boolean {
  return onBusy === 'cancelHolder' || cancellable === true;
}

/** The error for a call that cannot end older ones, if it `cancels` them, or else be ended by a newer one. */
export function notNewestFirst({ cancels }: Pick<NewestFirst, 'cancels'>, why: string): InvalidLockOptionsError {
  const [option, said] = cancels ? (['onBusy', "'cancelHolder'"] as const) : (['cancellable', 'true'] as const);
  return new InvalidLockOptionsError(`${option} cannot be ${said}: ${why}.`, option);
}

export const SEVERAL_HOLDERS = 'each of several resources may have another holder. Lock one resource in such a call';

/**
 * @param names the number of resources that the call wants, if known
 * @throws InvalidLockOptionsError if a call with these options cannot end older ones, or be ended by a newer one
 */
export function checkNewestFirst(
  { onBusy, mode = DEFAULT_MODE, retry, minHoldMs = 0, waitMs }: Omit<LockOptions, 'mode'> & { mode?: LockMode },
  names = 1,
): void {
  const reasons = [
    mode !== 'exclusive' && `in mode ${mode} several calls may use the resource at once. Use mode 'exclusive'`,
    names > 1 && SEVERAL_HOLDERS,
    retry !== undefined &&
      'a call that polls has no place in the queue, so it cannot be the newest call. Leave retry out',
    waitMs === 0 && 'a call that does not wait has no place in the queue, so it cannot be the newest call. Set waitMs',
    minHoldMs > 0 && 'the resource would stay held after the work has ended. Leave minHoldMs out',
  ];
  const why = reasons.find((reason) => reason !== false);
  if (why !== undefined) throw notNewestFirst({ cancels: onBusy === 'cancelHolder' }, why);
}

const fixed = new WeakSet<LockOptions>();

/** Marks options that never change, so that a lock client resolves them once. */
export function fixedOptions<O extends LockOptions>(options: O): Readonly<O> {
  fixed.add(Object.freeze(options));
  return options;
}

export function isFixed(options: LockOptions): boolean {
  return fixed.has(options);
}

/** Checks the options and fills in the defaults. */
export function resolveLockOptions(options: LockOptions | undefined, defaults: LockDefaults): ResolvedLockOptions {
  if (options !== undefined) LOCK_OPTIONS.check('lock options', options);
  return fillLockOptions(options, defaults);
}

/** Fills in the defaults of checked options. With `permits`, the request is for a semaphore. */
export function fillLockOptions(
  options: LockOptions | undefined,
  defaults: LockDefaults,
  permits?: PermitRequest,
): ResolvedLockOptions {
  if (options !== undefined) checkLeaseLimit(options.leaseMs, defaults.restartQuarantineMs);
  const maxHoldMs = options?.maxHoldMs ?? Infinity;
  const minHoldMs = options?.minHoldMs ?? LOCK_OPTIONS.defaults.minHoldMs;
  const mode = permits ? 'semaphore' : (options?.mode ?? DEFAULT_MODE);
  const filled: ResolvedLockOptions = {
    mode,
    permits,
    // A lease longer than the whole hold would leave the lock in Redis after the holder was notified of its loss.
    leaseMs: Math.min(options?.leaseMs ?? defaults.leaseMs, maxHoldMs),
    waitMs: options?.waitMs ?? defaults.waitMs,
    unavailableMs: options?.unavailableMs ?? defaults.unavailableMs,
    watchdog: options?.watchdog ?? defaults.watchdog,
    attemptTimeoutMs: options?.attemptTimeoutMs ?? defaults.attemptTimeoutMs,
    strictOrder: options?.strictOrder ?? defaults.strictOrder,
    maxWaiters: options?.maxWaiters ?? defaults.maxWaiters,
    backgroundRelease: options?.backgroundRelease ?? defaults.backgroundRelease,
    maxAhead: options?.maxAhead,
    maxHoldMs,
    minHoldMs,
    retry: options?.retry,
    signal: options?.signal,
    onLost: options?.onLost,
    group: options?.group,
    warnAfterMs: options?.warnAfterMs,
  };
  if (minHoldMs > 0) checkMinHold(filled);
  if (options === undefined) return filled;
  const { onWait, label } = options;
  if (filled.retry !== undefined) {
    if (filled.maxAhead !== undefined) throw placeOfPolling('maxAhead');
    if (onWait !== undefined) throw placeOfPolling('onWait');
  }
  const heard = onWait === undefined ? filled : { ...filled, onWait };
  const labelled = label === undefined ? heard : { ...heard, label: encodeLabel(label) };
  if (!isNewestFirst(options)) return labelled;
  const { onBusy, cancellable = false } = options;
  checkNewestFirst({ ...filled, onBusy, cancellable } as Parameters<typeof checkNewestFirst>[0]);
  // Passed on in memory, a lease would go to a call that is newer than one that waits in another process.
  return { ...labelled, strictOrder: true, newest: { cancels: onBusy === 'cancelHolder', yields: cancellable } };
}

/** The number of different options that are remembered. */
const REMEMBERED = 8;

/** Lets leases and waiting calls with equal options share one object. Keeps nothing that belongs to a single call. */
export class SharedOptions {
  readonly #known: ResolvedLockOptions[] = [];
  #next = 0;

  share(options: ResolvedLockOptions): ResolvedLockOptions {
    const { signal, retry, label, onWait, newest } = options;
    if ((signal ?? retry ?? label ?? onWait ?? newest) !== undefined) return options;
    for (const known of this.#known) if (hasSameValues(options, known)) return known;
    this.#known[this.#next++ % REMEMBERED] = options;
    return options;
  }
}

/** Written out: a loop over the names would take ten times as long. */
function hasSameValues(a: ResolvedLockOptions, b: ResolvedLockOptions): boolean {
  return (
    a.waitMs === b.waitMs &&
    a.leaseMs === b.leaseMs &&
    a.group === b.group &&
    a.mode === b.mode &&
    a.permits === b.permits &&
    a.unavailableMs === b.unavailableMs &&
    a.watchdog === b.watchdog &&
    a.attemptTimeoutMs === b.attemptTimeoutMs &&
    a.strictOrder === b.strictOrder &&
    a.maxWaiters === b.maxWaiters &&
    a.backgroundRelease === b.backgroundRelease &&
    a.maxAhead === b.maxAhead &&
    a.maxHoldMs === b.maxHoldMs &&
    a.minHoldMs === b.minHoldMs &&
    a.onLost === b.onLost &&
    a.warnAfterMs === b.warnAfterMs
  );
}

/** The permits that a call asks for, and the size that it states for the semaphore. */
export interface PermitRequest {
  /** The number of permits it wants, all or none. */
  readonly count: number;
  /** The caller's number of permits of the semaphore. */
  readonly total: number;
  /** `true` if `total` comes from a resize, and so applies to callers with another total too. */
  readonly isResized: boolean;
}

/** Returns true if two requests are for the same permits, or neither is for a semaphore. */
export function isSameRequest(a: PermitRequest | undefined, b: PermitRequest | undefined): boolean {
  return a === b || (a?.count === b?.count && a?.total === b?.total && a?.isResized === b?.isResized);
}
