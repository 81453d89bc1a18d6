import { hostname } from 'node:os';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { CONTENTION_SETTINGS, type ContentionSettings } from '../../features/fleet/core/contention/contention.js';
import type { GroupFunction, LockObserver } from '../../kernel/events/observers.js';
import type { LockTelemetry } from '../../kernel/events/telemetry.js';
import { ON_LEAK, type OnLeak } from '../../kernel/lease/leaks.js';
import { DEFAULT_OPTIONS, type LockDefaults, resolveLockDefaults } from '../../kernel/api/lock-options.js';
import type { TransactionHooks } from '../../kernel/api/transactions.js';
import {
  checkFunction,
  checkKnownOptions,
  describeValue,
  Option,
  type OptionsOf,
  OptionTable,
  pick,
  wrongValue,
} from '../../kernel/api/validation.js';
import type { RedisConnectionOption } from '../../redis/connection/connection-options.js';
import {
  checkIsInQuorum,
  type QuorumOptions,
  resolveDurability,
  checkPersistence,
  resolveQuarantine,
  resolveQuorum,
} from './store-options.js';

/** The `connection` that keeps the locks in this process. */
export const IN_MEMORY = 'memory:';

/** The options of `RedisLockModule.forRoot`, all of them optional. */
export interface RedisLockModuleSettings extends Partial<LockDefaults> {
  /**
   * The Redis to use. If you pass your own client, it is duplicated, never changed or closed. `'memory:'` keeps locks
   * in this process, for tests. Set either this or `quorum`.
   *
   * @allowed a URL, the path of a socket, ioredis options, `{ cluster: [...] }`, your own `Redis` or `Cluster`,
   *   `'memory:'`
   * @default none
   * @see docs/operations/topologies.md
   * @see docs/guide/testing.md
   */
  connection?: RedisConnectionOption;
  /**
   * Several independent primaries instead of one `connection`: a lock is held by the votes of a majority of them.
   *
   * @default none
   */
  quorum?: QuorumOptions;
  /**
   * The prefix of every key and channel in Redis, after the `keyPrefix` of your own client, if you pass one.
   * Applications with the same prefix on one Redis share their locks.
   *
   * @allowed 1 to 100 characters, no braces, no white space
   * @default 'lock'
   */
  keyPrefix?: string;
  /**
   * The name of this process as a holder or waiter. Must be unique.
   *
   * @allowed 1 to 100 of `A-Z a-z 0-9 _ . : @ -`
   * @default host name, process id and six random characters
   */
  instanceId?: string;
  /**
   * Counts a lock as held, and a renewal as made, only once enough replicas of Redis have it. Then a failover to one of
   * these replicas does not lose the lock. `'memory:'` ignores this option.
   *
   * @default none
   */
  durability?: {
    /**
     * The number of replicas that must have a lock before it counts as acquired. Require fewer than you have, such as
     * one of two: otherwise, no lock is granted while a replica is down.
     *
     * @allowed 1 to 5
     * @see docs/operations/topologies.md#how-many-replicas
     */
    replicas: number;
    /**
     * Time to wait for the replicas: less than `attemptTimeoutMs`, and less than a third of `leaseMs`.
     *
     * @allowed 1 ms to 10 s
     * @default 50
     */
    timeoutMs?: number;
  };
  /**
   * After Redis has started, no lock is granted for this time, because Redis may have forgotten leases that are still
   * held. Set it to the longest lease of any application on this Redis, at least `leaseMs`. 0 turns this off. The lease
   * of a job that sets no `leaseMs` is at most this long. With `appendfsync always`, Redis grants locks at once.
   * `'memory:'` ignores this option.
   *
   * @allowed 50 ms to 24 h
   * @default none; on a quorum of two or more nodes, `leaseMs`, or 30 s if the module sets no `leaseMs`
   * @see docs/guide/how-it-works.md#after-a-restart-of-redis
   */
  restartQuarantineMs?: number;
  /**
   * Declares that Redis has `appendfsync always`: every write is on disk before Redis replies, so a restart that keeps
   * the data needs no quarantine. Only set this if your Redis user lacks the permission for `CONFIG GET`.
   *
   * @default none: Redis is asked
   */
  persistence?: 'always';
  /**
   * Functions to call with every lock event. You don't need one for the log: losses and failures are always logged.
   *
   * @allowed functions
   * @default none
   * @see docs/reference/events.md
   */
  observers?: readonly LockObserver[];
  /**
   * What to do about a leaked lease: one that was not released, and that no code refers to any more. Both values log a
   * warning and emit the event `leaked`. Then `'warn'` renews the lease as long as the process lives; `'expire'`
   * doesn't, so the lease is `lost`. If your code has read the lease's `signal`, the leak isn't detected.
   *
   * @default 'warn'
   */
  onLeak?: OnLeak;
  /**
   * Keeps a lock that `using` or a decorator acquires inside a database transaction until the commit or rollback. Set
   * `maxHoldMs` if a transaction may never end.
   *
   * @allowed `typeormTransactional(...)`, a `TransactionScope`, or your own `TransactionHooks`
   * @default none: the lock is released when the work ends
   * @see docs/guide/with-transactions.md
   */
  transactions?: TransactionHooks;
  /**
   * Returns the group of a resource that is locked without a decorator: the name of this kind of lock in events and
   * metrics, at most 100 characters long.
   *
   * @default the text before the first `:` of the resource; if it has no `:`, see Groups
   * @see docs/reference/events.md#groups
   */
  group?: GroupFunction;
  /**
   * `true` stores each lock's group in Redis, in the lock's label (about 30 bytes), so that metrics and
   * `locks.contention()` of other processes can name the group that blocks them.
   *
   * @default false
   * @see docs/operations/contention.md#holders-in-other-processes
   */
  labelGroups?: boolean;
  /**
   * What to do about a name like `order:undefined`, which a template string produces if a value is missing. `'refuse'`
   * throws `InvalidResourceError` if the name contains `[object Object]`, or if a part between `:`, `/`, `|` and `#` is
   * `undefined`, `null` or `NaN`.
   *
   * @default 'refuse'
   */
  suspiciousNames?: 'refuse' | 'allow';
  /**
   * Records metrics or traces. Its errors never break a lock.
   *
   * @allowed a `LockTelemetry`, or an array of them
   * @default none
   * @see docs/operations/metrics.md
   */
  telemetry?: LockTelemetry | readonly LockTelemetry[];
  /**
   * Options for the counts of `locks.contention()`.
   *
   * @see docs/operations/contention.md
   */
  contention?: ContentionSettings;
  /** Options for the shutdown of the application. */
  shutdown?: {
    /**
     * Time for running work to finish and release its locks at shutdown. With `connection: 'memory:'`, the default is
     * 0, so that an unreleased lease doesn't delay a test's `close()`.
     *
     * @allowed 0 ms to 1 h
     * @default 10000
     * @see docs/reference/shutdown.md
     */
    drainMs?: number;
  };
}

/**
 * Options for several independent primaries.
 */
export interface OptionsForQuorum extends RedisLockModuleSettings {
  connection?: never;
  quorum: QuorumOptions;
}

/** Options for one Redis, Sentinel or Cluster, or for locks in this process. */
export interface OptionsWithConnection extends RedisLockModuleSettings {
  connection: RedisConnectionOption;
  quorum?: never;
}

/**
 * The options of `RedisLockModule.forRoot`: with either `connection` or `quorum`. The factories of `forRootAsync`
 * return the same.
 */
export type RedisLockModuleOptions = OptionsForQuorum | OptionsWithConnection;

/** The options of a registration. An asynchronous factory does not return them, because Nest needs them earlier. */
export interface RedisLockModuleExtras {
  /**
   * Registers another, independent lock service under this name. Inject it with `@InjectRedisLock(name)`. Names must be
   * unique in an application.
   *
   * @allowed 1 to 100 characters
   * @default the default service
   */
  service?: string;
  /**
   * `true` lets all modules inject the service without importing this module.
   *
   * @default true
   */
  global?: boolean;
}

/**
 * Each module option with its check and its default. Dependencies between options are checked in
 * `resolveModuleOptions`.
 */
export const MODULE_OPTIONS = new OptionTable({
  connection: Option.checked<RedisConnectionOption>(),
  quorum: Option.checked<QuorumOptions>(),
  keyPrefix: Option.text(/^[^{}\s\p{C}]{1,100}$/u, '1 to 100 characters without braces or white space').default('lock'),
  instanceId: Option.text(/^[\w.:@-]{1,100}$/, '1 to 100 of A-Z a-z 0-9 _ . : @ -'),
  ...DEFAULT_OPTIONS,
  durability: Option.checked<NonNullable<RedisLockModuleSettings['durability']>>(),
  restartQuarantineMs: Option.checked<number>(),
  persistence: Option.oneOf<'always'>(['always']),
  observers: Option.checked<readonly LockObserver[]>(checkObservers).default([]),
  onLeak: Option.oneOf<OnLeak>(ON_LEAK).default('warn'),
  transactions: Option.checked<TransactionHooks>(checkTransactions),
  group: Option.checked<GroupFunction>(checkFunction),
  labelGroups: Option.flag().default(false),
  suspiciousNames: Option.oneOf<'refuse' | 'allow'>(['refuse', 'allow']).default('refuse'),
  telemetry: Option.checked<LockTelemetry | readonly LockTelemetry[]>(checkTelemetry),
  contention: Option.checked<ContentionSettings>((option, value) =>
    CONTENTION_SETTINGS.check(option, value as object, `${option}.`),
  ),
  shutdown: Option.checked<NonNullable<RedisLockModuleSettings['shutdown']>>((option, value) =>
    SHUTDOWN_OPTIONS.check(option, value as object, `${option}.`),
  ),
} satisfies OptionsOf<RedisLockModuleSettings>);

export const SHUTDOWN_OPTIONS = new OptionTable({
  drainMs: Option.milliseconds(0, 60 * 60 * 1000).default(10_000),
} satisfies OptionsOf<NonNullable<RedisLockModuleSettings['shutdown']>>);

export const EXTRA_OPTIONS = new OptionTable({
  service: Option.text(/^.{1,100}$/u, '1 to 100 characters'),
  global: Option.flag().default(true),
} satisfies OptionsOf<RedisLockModuleExtras>);

function checkTransactions(option: string, hooks: unknown): void {
  const { current, runOnEnd } = (hooks ?? {}) as Partial<TransactionHooks>;
  if (typeof current === 'function' && typeof runOnEnd === 'function') return;
  throw new InvalidLockOptionsError(
    `${option} must have current() and runOnEnd(): take typeormTransactional({ ... }) or a TransactionScope, ` +
      `not ${describeValue(hooks)}.`,
    option,
  );
}

function checkTelemetry(option: string, telemetry: unknown): void {
  const all = [telemetry].flat() as Partial<LockTelemetry>[];
  for (const each of all) {
    if (typeof each?.start === 'function') continue;
    throw wrongValue(option, 'a LockTelemetry, which has start(), or an array of them', each);
  }
  if (new Set(all).size === all.length) return;
  const what = 'has the same LockTelemetry twice, which would count everything twice. List it once.';
  throw new InvalidLockOptionsError(`${option} ${what}`, option);
}

function checkObservers(option: string, observers: unknown): void {
  if (!Array.isArray(observers)) {
    throw wrongValue(option, 'an array', observers);
  }
  observers.forEach((observer, index) => {
    if (observer !== undefined) checkFunction(`${option}[${index}]`, observer);
  });
}

/**
 * Checks the options of a registration, and that there are no unknown options.
 *
 * @param where the method that was called with them, for messages
 * @param known the names of its other options
 */
export function checkExtras(
  where: string,
  options: RedisLockModuleExtras,
  known: readonly string[] = MODULE_OPTIONS.names,
): void {
  checkIsInQuorum(Object(options) as object);
  checkKnownOptions(where, options, [...known, ...EXTRA_OPTIONS.names]);
  const { service, global } = options;
  EXTRA_OPTIONS.check(where, { service, global });
}

/** Checks the options of a module once, at boot. */
export function resolveModuleOptions(given: RedisLockModuleOptions) {
  checkNoExtras(given);
  checkIsInQuorum(Object(given) as object);
  MODULE_OPTIONS.check('The result of the factory of RedisLockModule.forRootAsync', given);
  checkPlace(given);
  const options = MODULE_OPTIONS.filled<RedisLockModuleSettings>(given);
  const { connection, durability, instanceId = defaultInstanceId() } = options;
  const defaults = resolveLockDefaults(given);
  const quorum = resolveQuorum(options.quorum, defaults.leaseMs);
  if (quorum && durability !== undefined) {
    throw new InvalidLockOptionsError(
      'durability is for a connection. With a quorum, a lock survives the loss of a node because a majority of the ' +
        'independent nodes has it.',
      'durability',
    );
  }
  // A node that has lost its data must not vote for a second holder.
  const isMajority = quorum !== undefined && quorum.connections().length > 1;
  const restartQuarantineMs = options.restartQuarantineMs ?? (isMajority ? defaults.runLeaseMs : undefined);
  const limit = resolveQuarantine(restartQuarantineMs, defaults);
  checkPersistence(options.persistence, limit.restartQuarantineMs);
  return {
    ...pick(options, 'keyPrefix', 'observers', 'onLeak', 'transactions', 'contention', 'persistence'),
    ...pick(options, 'group', 'labelGroups', 'suspiciousNames'),
    // A function, so that a log of the module or of its container shows no password.
    connection: () => connection,
    quorum,
    instanceId,
    /** `true` if the options set the instance id. */
    isNamed: options.instanceId !== undefined,
    defaults: { ...defaults, ...limit },
    durability: resolveDurability(durability, defaults),
    telemetry: [options.telemetry ?? []].flat(),
    drainMs: options.shutdown?.drainMs ?? (connection === IN_MEMORY ? 0 : SHUTDOWN_OPTIONS.defaults.drainMs),
  };
}

export type ResolvedModuleOptions = ReturnType<typeof resolveModuleOptions>;

/** @throws InvalidLockOptionsError unless the options have either a connection or a quorum */
function checkPlace({ connection, quorum }: RedisLockModuleSettings): void {
  if (connection !== undefined && quorum !== undefined) {
    throw new InvalidLockOptionsError('Set either connection or quorum, not both.', 'quorum');
  }
  if (connection !== undefined || quorum !== undefined) return;
  throw new InvalidLockOptionsError(
    'connection is missing. Set it to a URL such as redis://localhost:6379, to ioredis options, or to an ioredis ' +
      'client. Or set quorum: { connections: [...] } to several of these.',
    'connection',
  );
}

/** Returns true if another application could use the same keys by accident. */
export function mayShareKeys({ keyPrefix, connection }: ResolvedModuleOptions): boolean {
  return keyPrefix === MODULE_OPTIONS.defaults.keyPrefix && connection() !== IN_MEMORY;
}

function checkNoExtras(options: object): void {
  const extra = EXTRA_OPTIONS.names.find((name) => (options as Record<string, unknown> | null)?.[name] !== undefined);
  if (!extra) return;
  throw new InvalidLockOptionsError(
    `${extra} is an option of RedisLockModule.forRootAsync itself, not of the factory: Nest needs it earlier.`,
    extra,
  );
}

/** Names the process for an operator. New with every start, so that a living instance never passes for a dead one. */
function defaultInstanceId(): string {
  const host = hostname()
    .replace(/[^\w.-]/g, '_')
    .slice(0, 60);
  return `${host}:${process.pid}:${Math.random().toString(36).slice(2, 8).padEnd(6, '0')}`;
}
