import { InvalidLockOptionsError } from './errors.js';
import type { Holders, LockLabel } from './holder.js';
import { checkLabel, encodeLabel } from './given-label.js';
import { checkGroup } from './resource.js';
import { ACQUIRE_MODES, type AcquireMode, type LockMode } from './lock-mode.js';
import type { RetryStrategy } from './retry.js';
import {
  abortSignal,
  atLeast,
  checked,
  countOrInfinity,
  flag,
  milliseconds,
  oneOf,
  type OptionsOf,
  OptionTable,
  patience,
  pick,
  wrongValue,
} from './validation.js';

export { type AcquireMode, isSharedMode, LOCK_MODES, type LockMode } from './lock-mode.js';

export const MIN_LEASE_MS = 50;
export const MAX_LEASE_MS = 24 * 60 * 60 * 1000;
/** The default for the run of a job. Its length costs no caller anything, and a job blocks its event loop more often. */
export const RUN_LEASE_MS = 30_000;

/** What follows a lease that is lost while work runs under it. */
export type OnLost = 'throw' | 'ignore';

/** The options of one call to acquire. An omitted option takes the module's default. */
export interface LockOptions {
  /**
   * Which other leases a lock may be held beside, and whether the async context that holds it may lock it again.
   * `@ReadLock` and `@WriteLock` set it.
   *
   * @default 'exclusive'
   * @see docs/guide/choosing-a-mode.md
   */
  mode?: AcquireMode;
  /**
   * How long Redis keeps the lock without a renewal. When its holder dies, the others wait for this long. The run of a
   * job has 30 s, unless the module states a `leaseMs`.
   *
   * @allowed 50 ms to 24 h
   * @default 15000
   * @see docs/guide/choosing-a-mode.md#how-long-a-lease-ttl-watchdog
   */
  leaseMs?: number;
  /**
   * How long to wait for a busy resource. With 0, the call fails at once with `LockBusyError`. With `Infinity`, it
   * waits until it is granted. Longer than `leaseMs`, a call outlives a holder that dies. For `tryAcquire` and
   * `tryUsing` the default is 0, whatever the module's is.
   *
   * @allowed 0 ms and more, or `Infinity`
   * @default 18000
   */
  waitMs?: number;
  /**
   * How long to wait for a Redis that is not connected, within `waitMs`; then the call fails with
   * `LockUnavailableError`. A call that already waits when Redis goes away counts from then. If Redis is back in time,
   * the call goes on. Of a quorum: while no majority can be reached. `waitMs` ends the wait where that is less.
   *
   * @allowed 0 ms and more, or `Infinity`
   * @default 2000
   * @see docs/guide/waiting.md#redis-is-down-what-do-my-requests-do
   */
  unavailableMs?: number;
  /**
   * `true` renews the lease at a third of `leaseMs` until it is released. `false` makes a fixed lease that ends after
   * `leaseMs`.
   *
   * @default true
   */
  watchdog?: boolean;
  /**
   * The watchdog keeps the lease no longer than this; then the lease is lost.
   *
   * @allowed 50 ms and more
   * @default no limit
   */
  maxHoldMs?: number;
  /**
   * How long the resource stays taken at least, counted from the grant by the clock of Redis. A lease can be released
   * earlier: its holder goes on at once, and other callers get the resource when this time is over. A lease that is
   * lost ends as always, also before this time is over. At most `maxHoldMs`; without a watchdog, at most `leaseMs`.
   *
   * @allowed 0 ms to 24 h
   * @default 0
   * @see docs/guide/waiting.md#keeping-a-resource-taken-for-a-time
   */
  minHoldMs?: number;
  /**
   * How long one command may take before the attempt counts as timed out. Releases and other requests about a lease
   * are retried for this long while it is certain that Redis did not execute them.
   *
   * @allowed 10 ms to 60 s
   * @default 1000
   */
  attemptTimeoutMs?: number;
  /**
   * Whether the processes that wait take strict turns: one lease each, in the order in which they came. Otherwise a lease
   * may stay inside this process, without a command to Redis, up to 31 times in a row, and for 10 ms.
   *
   * @default false
   * @see docs/guide/waiting.md
   */
  strictOrder?: boolean;
  /**
   * How many calls of this process, and how many processes, may wait for one resource. One more fails with
   * `LockQueueFullError`.
   *
   * @allowed 1 and more
   * @default 10000
   */
  maxWaiters?: number;
  /**
   * `true`: a release does not wait for the answer of Redis, which halves the time that a short lock takes. Commands
   * keep their order, so the next acquire of this process comes after the release. A release that fails is reported
   * to the observers only, and a release right before `process.exit()` is lost.
   *
   * @default false
   * @see docs/guide/waiting.md#not-waiting-for-the-release
   */
  backgroundRelease?: boolean;
  /**
   * What `using`, `tryUsing` and the decorators do if the lease is lost before the work settles. `'throw'`: when the
   * work has settled, they reject with `LeaseLostError`, which says whether the work finished, and has its result. An
   * error of the work itself is thrown instead. `'ignore'`: they resolve to the result of the work. In both cases
   * `lease.signal` aborts as soon as the lease is lost.
   *
   * @allowed `'throw'`, `'ignore'`
   * @default 'throw'
   * @see docs/guide/lock-service.md#if-the-lease-is-lost
   */
  onLost?: OnLost;
  /**
   * What a call does while the resource is taken. `'wait'`: it waits for its turn. `'cancelHolder'`: first, it asks the
   * holder to stop, and ends the calls that wait before it, where they are `cancellable`. It gets the resource when the
   * work of the holder has ended, or its lease has.
   *
   * @allowed `'wait'`, `'cancelHolder'`
   * @default 'wait'
   * @see docs/guide/waiting.md#only-the-newest-call-counts
   */
  onBusy?: 'wait' | 'cancelHolder';
  /**
   * `true`: a newer call with `onBusy: 'cancelHolder'` ends this one. While this call waits, it fails with
   * `LockAbortedError`. While it holds the resource, `lease.signal` aborts with that error, and the lease goes on until
   * it is released. For one resource in mode `exclusive`, and for calls that wait in the queue.
   *
   * @default false
   * @see docs/guide/waiting.md#only-the-newest-call-counts
   */
  cancellable?: boolean;
  /**
   * Polls by this strategy instead of waiting in the queue: `fixedInterval`, `exponentialBackoff`, or your own.
   * Calls with `waitMs: 0` ignore it.
   *
   * @default none
   */
  retry?: RetryStrategy;
  /**
   * Ends the wait with `LockAbortedError` when it aborts. A lease that was already granted is not touched.
   *
   * @default none
   */
  signal?: AbortSignal;
  /**
   * What events and metrics call this kind of lock: a static name, never an id. The decorators have `Class.method`.
   *
   * @allowed 1 to 100 letters, digits, spaces and `_ $ . - / # : ( )`
   * @default what the module option `group` returns
   * @see docs/reference/events.md#groups
   */
  group?: string;
  /**
   * What other processes are told of this call while it holds the lock or waits for it: plain JSON, such as
   * `{ group: 'Orders.pay', request: id }`. Errors, events, `inspect` and `list` show it. It is stored in Redis as it
   * is, so leave secrets out. Without a label, nothing is stored.
   *
   * @allowed an object of at most 256 bytes as JSON
   * @default none
   * @see docs/operations/at-3-am.md#which-work-is-it
   */
  label?: LockLabel;
  /**
   * A lease that is held for longer is told once: by the event `heldLong`, and by a warning. The default counts for
   * `using` and the decorators. A lease of `acquire`, a leadership and the run of a job may be held for long, and are
   * not told: a run is reported if it keeps later ticks from running for this long. `Infinity`: never.
   *
   * @allowed 1 ms and more, or `Infinity`
   * @default 60000
   * @see docs/operations/logs.md#a-lease-is-held-for-long
   */
  warnAfterMs?: number;
}

/** How long a lease may be. What it is when it is left out differs. */
export const LEASE_LENGTH = milliseconds(MIN_LEASE_MS, MAX_LEASE_MS);

/** Each lock option with its check and its default. */
export const LOCK_OPTIONS = new OptionTable({
  mode: oneOf(ACQUIRE_MODES).default('exclusive'),
  leaseMs: LEASE_LENGTH.default(15_000),
  // A lease, and a bit: who waits for a holder that dies has the lock within 1.1 leases.
  waitMs: patience().default(18_000),
  unavailableMs: patience().default(2_000),
  watchdog: flag().default(true),
  maxHoldMs: milliseconds(MIN_LEASE_MS),
  minHoldMs: milliseconds(0, MAX_LEASE_MS).default(0),
  attemptTimeoutMs: milliseconds(10, 60_000).default(1_000),
  strictOrder: flag().default(false),
  maxWaiters: atLeast(1, 'waiters').default(10_000),
  backgroundRelease: flag().default(false),
  onLost: oneOf(['throw', 'ignore'] as const).default('throw'),
  onBusy: oneOf(['wait', 'cancelHolder'] as const).default('wait'),
  cancellable: flag().default(false),
  retry: checked<RetryStrategy>(checkStrategy),
  signal: abortSignal(),
  group: checked<string>(checkGroup),
  label: checked<LockLabel>(checkLabel),
  warnAfterMs: countOrInfinity(1, 'milliseconds').default(60_000),
} satisfies OptionsOf<LockOptions>);

/** The options that a module sets for all its locks. */
export type LockDefaults = LeaseLimit &
  Required<
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
  >;

/** The defaults with what follows from them. */
export interface ResolvedDefaults extends LockDefaults {
  /** The lease of a job's run. */
  readonly runLeaseMs: number;
}

/** How long a lease may be. */
export interface LeaseLimit {
  /** A store that has lost its locks grants none for this long, so no lease may be longer. @default no limit */
  readonly restartQuarantineMs?: number | undefined;
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
  /** What events call this kind of lock, if the call or its method says so. */
  readonly group?: string | undefined;
  /** As it is stored. Only a call with a label has this property: the others must not cost more for it. */
  readonly label?: string | undefined;
  /** If the call says so. */
  readonly warnAfterMs?: number | undefined;
  /** Only a call has this property that ends older ones, or that a newer one may end. */
  readonly newest?: NewestFirst;
  /** What follows the call. Only a call that is followed has this property. */
  readonly followed?: WaitFollower;
}

/** The part of a call where only the newest one counts. */
export interface NewestFirst {
  /** Whether it ends older calls, see `onBusy`. */
  readonly cancels: boolean;
  /** Whether a newer one may end it, see `cancellable`. */
  readonly yields: boolean;
}

/** Hears of the holders that a call waits for. */
export interface WaitFollower {
  /** @param holders called at once, with the time */
  waits(holders: (now: number) => Holders, now?: number): void;
}

function checkStrategy(option: string, value: unknown): void {
  if (typeof (value as Partial<RetryStrategy> | null)?.next === 'function') return;
  throw wrongValue(option, 'a strategy with a next() method, such as fixedInterval({ intervalMs: 100 })', value);
}

/** @throws InvalidLockOptionsError if the lease is longer than the quarantine of a store that has lost its data */
export function checkLeaseLimit(leaseMs: number | undefined, { restartQuarantineMs = Infinity }: LeaseLimit): void {
  if (leaseMs === undefined || leaseMs <= restartQuarantineMs) return;
  throw new InvalidLockOptionsError(
    `leaseMs must be at most restartQuarantineMs (${restartQuarantineMs}), not ${leaseMs}: a Redis that has restarted without ` +
      'its data grants locks again after that time. Raise restartQuarantineMs, in all applications that share the locks.',
    'leaseMs',
  );
}

/** @throws InvalidLockOptionsError if the lease would end by itself before its minimum is over */
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
      `minHoldMs must be at most leaseMs (${leaseMs}) where watchdog is false, not ${minHoldMs}: a fixed lease ends ` +
        'after leaseMs. Raise leaseMs, or lower minHoldMs.',
      'minHoldMs',
    );
  }
}

/** Whether only the newest call counts, for one side or the other. */
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
 * @param names how many resources the call wants, as far as that is known
 * @throws InvalidLockOptionsError if a call with these options cannot end older ones, or be ended by a newer one
 */
export function checkNewestFirst(
  { onBusy, mode = DEFAULT_MODE, retry, minHoldMs = 0, waitMs }: Omit<LockOptions, 'mode'> & { mode?: LockMode },
  names = 1,
): void {
  const reasons = [
    mode !== 'exclusive' && `in mode ${mode} several calls may use the resource at once. Use mode 'exclusive'`,
    names > 1 && SEVERAL_HOLDERS,
    retry !== undefined && 'a call that polls has no place in the queue that says if it is newer. Leave retry out',
    waitMs === 0 && 'a call that does not wait has no place in the queue that says if it is newer. Set waitMs',
    minHoldMs > 0 && 'the resource would stay taken after the work has ended. Leave minHoldMs out',
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
  if (options !== undefined) checkLeaseLimit(options.leaseMs, defaults);
  const maxHoldMs = options?.maxHoldMs ?? Infinity;
  const minHoldMs = options?.minHoldMs ?? LOCK_OPTIONS.defaults.minHoldMs;
  const mode = permits ? 'semaphore' : (options?.mode ?? DEFAULT_MODE);
  const filled: ResolvedLockOptions = {
    mode,
    permits,
    // A lease longer than the whole hold would leave the lock in Redis after the holder was told that it lost it.
    leaseMs: Math.min(options?.leaseMs ?? defaults.leaseMs, maxHoldMs),
    waitMs: options?.waitMs ?? defaults.waitMs,
    unavailableMs: options?.unavailableMs ?? defaults.unavailableMs,
    watchdog: options?.watchdog ?? defaults.watchdog,
    attemptTimeoutMs: options?.attemptTimeoutMs ?? defaults.attemptTimeoutMs,
    strictOrder: options?.strictOrder ?? defaults.strictOrder,
    maxWaiters: options?.maxWaiters ?? defaults.maxWaiters,
    backgroundRelease: options?.backgroundRelease ?? defaults.backgroundRelease,
    maxHoldMs,
    minHoldMs,
    retry: options?.retry,
    signal: options?.signal,
    onLost: options?.onLost,
    group: options?.group,
    warnAfterMs: options?.warnAfterMs,
  };
  if (minHoldMs > 0) checkMinHold(filled);
  const labelled = options?.label === undefined ? filled : { ...filled, label: encodeLabel(options.label) };
  if (options === undefined || !isNewestFirst(options)) return labelled;
  const { onBusy, cancellable = false } = options;
  checkNewestFirst({ ...filled, onBusy, cancellable } as Parameters<typeof checkNewestFirst>[0]);
  // Passed on in memory, a lease would go to a call that is newer than one that waits in another process.
  return { ...labelled, strictOrder: true, newest: { cancels: onBusy === 'cancelHolder', yields: cancellable } };
}

/** The permits that a call asks for, and the size that it states for the semaphore. */
export interface PermitRequest {
  /** How many permits it wants, all or none. */
  readonly count: number;
  /** How many permits the caller says the semaphore has. */
  readonly total: number;
  /** Whether `total` comes from a resize, and so holds for callers that state another total too. */
  readonly isResized: boolean;
}

/** Whether two requests are for the same permits, or neither is for a semaphore. */
export function isSameRequest(a: PermitRequest | undefined, b: PermitRequest | undefined): boolean {
  return a === b || (a?.count === b?.count && a?.total === b?.total && a?.isResized === b?.isResized);
}
