import { hostname } from 'node:os';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { LockObserver } from '../../core/api/events.js';
import { ON_LEAK, type OnLeak } from '../../core/lease/leaks.js';
import { type LockDefaults, resolveLockDefaults } from '../../core/api/lock-options.js';
import {
  checkBoolean,
  checkFunction,
  checkInteger,
  checkKnownOptions,
  checkOneOf,
  describeValue,
} from '../../core/api/validation.js';
import type { RedisConnectionOption } from '../../redis/connection/connection-options.js';
import type { Durability } from '../../redis/durability/durability.js';
import { resolveDurability } from './durability-options.js';
import { type QuorumOptions, type ResolvedQuorum, resolveQuorum } from './quorum-options.js';
import { resolveQuarantine } from './quarantine-option.js';

/** The `connection` that keeps the locks in this process. */
export const IN_MEMORY = 'memory:';
/** What the keys of an application begin with that says nothing else. */
export const DEFAULT_KEY_PREFIX = 'lock';

/** What `RedisLockModule.forRoot` takes, and the factories of `forRootAsync` give. */
export interface RedisLockModuleOptions extends Partial<LockDefaults>, QuorumOptions {
  /**
   * Where Redis is: a URL, the path of a socket, ioredis options, or an ioredis client of yours. A client is duplicated, never changed or
   * closed. `'memory:'` keeps the locks in this process, for tests without a Redis. Either this or `quorum` is required. @default none
   */
  connection?: RedisConnectionOption;
  /**
   * What every key and channel in Redis begins with. Applications with the same prefix on the same Redis share their
   * locks. @default 'lock'
   */
  keyPrefix?: string;
  /**
   * How this process is called where holders are shown: 1 to 100 of `A-Z a-z 0-9 _ . : @ -`, different for each process.
   * @default host name, process id and six random characters
   */
  instanceId?: string;
  /**
   * A lock counts as held, and a renewal as made, only when so many replicas of the Redis have it: then a fail-over to one of them
   * does not lose it. Ignored with `'memory:'`. @default none
   */
  durability?: {
    /** How many, 1 to 5: enough that every replica that may be made the primary has it. */
    replicas: number;
    /**
     * How long to wait for them, in milliseconds: 1 to 10000. Less than `attemptTimeoutMs`, and than a third of `leaseMs`.
     * @default 50
     */
    timeoutMs?: number;
  };
  /**
   * The longest lease that anybody takes, in milliseconds: `leaseMs` to 24 h. After Redis has restarted without its data no lock is
   * granted for so long, because earlier leases may still be trusted. 0: it goes on at once. Ignored with `'memory:'`.
   * @default none; leaseMs for each node of a quorum of two or more
   */
  restartQuarantineMs?: number;
  /** Called with everything that happens to a lock. Losses and failures are logged in any case. @default none */
  observers?: readonly LockObserver[];
  /**
   * What becomes of a lease that was not released and that nothing in the process refers to any more, as the garbage collector finds.
   * In any case one warning and the event `leaked`. `'warn'`: it is renewed as long as the process lives, as one may want it to be.
   * `'expire'`: it is renewed no more, ends with its lease, and is `lost`. @default 'warn'
   */
  onLeak?: OnLeak;
  /** What happens when the application shuts down. */
  shutdown?: {
    /** How long running work may hold its locks, in milliseconds: 0 to 1 h. @default 10000 */
    drainMs?: number;
  };
}

/** Which registration it is; not part of what an asynchronous factory gives, because Nest needs it before that. */
export interface RedisLockModuleExtras {
  /**
   * Registers a second, independent lock service, injected by `@InjectRedisLock(name)`: 1 to 100 characters.
   * @default the default one
   */
  name?: string;
  /** Whether other modules see the service without importing the module. @default true */
  global?: boolean;
}

/** Options with nothing left open. */
export interface ResolvedModuleOptions {
  /** A function, so that who prints the module, or the container that has it, prints no password. */
  readonly connection: () => RedisConnectionOption | undefined;
  /** In place of the connection. */
  readonly quorum: ResolvedQuorum | undefined;
  readonly keyPrefix: string;
  readonly instanceId: string;
  readonly defaults: LockDefaults;
  readonly durability: Durability | undefined;
  readonly observers: readonly LockObserver[];
  readonly onLeak: OnLeak;
  readonly drainMs: number;
}

const OPTION_NAMES = [
  'connection',
  'quorum',
  'fencing',
  'nodeTimeoutMs',
  'keyPrefix',
  'instanceId',
  'leaseMs',
  'waitMs',
  'watchdog',
  'attemptTimeoutMs',
  'cohort',
  'cohortMs',
  'maxWaiters',
  'backgroundRelease',
  'durability',
  'restartQuarantineMs',
  'observers',
  'onLeak',
  'shutdown',
];
const EXTRA_NAMES = ['name', 'global'] as const satisfies readonly (keyof RedisLockModuleExtras)[];
const DEFAULT_DRAIN_MS = 10_000;
const LONGEST_DRAIN_MS = 60 * 60 * 1000;

/**
 * Checks which registration it is, and that the options have no others than these.
 *
 * @param where the method that was given them, for messages
 * @param known the names of its other options
 */
export function checkExtras(
  where: string,
  options: RedisLockModuleExtras,
  known: readonly string[] = OPTION_NAMES,
): void {
  checkKnownOptions(where, options, [...known, ...EXTRA_NAMES]);
  const { name, global } = options;
  if (name !== undefined) checkText('name', name, /^.{1,100}$/u, '1 to 100 characters');
  checkBoolean('global', global);
}

/**
 * Checks the options of a module once, at boot.
 *
 * @throws InvalidLockOptionsError that names the option, the value and what is allowed
 */
export function resolveModuleOptions(options: RedisLockModuleOptions): ResolvedModuleOptions {
  checkNoExtras(options);
  checkKnownOptions('What the factory of RedisLockModule.forRootAsync gives', options, OPTION_NAMES);
  const {
    connection,
    keyPrefix = DEFAULT_KEY_PREFIX,
    instanceId = defaultInstanceId(),
    observers = [],
    shutdown = {},
  } = options;
  const { onLeak = 'warn' } = options;
  if (connection !== undefined && options.quorum !== undefined) {
    throw new InvalidLockOptionsError('Give either connection or quorum, and not both.', 'quorum');
  }
  if (connection === undefined && options.quorum === undefined) {
    throw new InvalidLockOptionsError(
      'connection is missing: give a URL such as redis://localhost:6379, ioredis options, or an ioredis client. ' +
        'Or give several of them as quorum.',
      'connection',
    );
  }
  checkText('keyPrefix', keyPrefix, /^[^{}\s\p{C}]{1,100}$/u, '1 to 100 characters without braces or white space');
  checkText('instanceId', instanceId, /^[\w.:@-]{1,100}$/, '1 to 100 of A-Z a-z 0-9 _ . : @ -');
  if (!Array.isArray(observers)) {
    throw new InvalidLockOptionsError(`observers must be an array, not ${describeValue(observers)}.`, 'observers');
  }
  checkOneOf('onLeak', onLeak, ON_LEAK);
  observers.forEach((observer, index) => checkFunction(`observers[${index}]`, observer));
  checkKnownOptions('shutdown', shutdown, ['drainMs']);
  checkInteger('shutdown.drainMs', shutdown.drainMs, 0, LONGEST_DRAIN_MS);
  const defaults = resolveLockDefaults(options, 'RedisLockModule');
  const quorum = resolveQuorum(options, defaults.leaseMs);
  if (quorum && options.durability !== undefined) {
    throw new InvalidLockOptionsError(
      'durability is for a connection: the nodes of a quorum are independent primaries, and a majority of them is what lasts.',
      'durability',
    );
  }
  // A node that has forgotten for whom it voted must not vote for somebody else.
  const isMajority = quorum !== undefined && quorum.names.length > 1;
  const restartQuarantineMs = options.restartQuarantineMs ?? (isMajority ? defaults.leaseMs : undefined);
  return {
    connection: () => connection,
    quorum,
    keyPrefix,
    instanceId,
    defaults: { ...defaults, ...resolveQuarantine(restartQuarantineMs, defaults) },
    durability: resolveDurability(options.durability, defaults),
    observers,
    onLeak,
    drainMs: shutdown.drainMs ?? DEFAULT_DRAIN_MS,
  };
}

function checkNoExtras(options: RedisLockModuleOptions & RedisLockModuleExtras): void {
  const extra = EXTRA_NAMES.find((name) => options?.[name] !== undefined);
  if (!extra) return;
  throw new InvalidLockOptionsError(
    `${extra} is given to RedisLockModule.forRootAsync itself, not by the factory: Nest needs it first.`,
    extra,
  );
}

function checkText(option: string, value: unknown, allowed: RegExp, explained: string): void {
  if (typeof value === 'string' && allowed.test(value) && value.isWellFormed()) return;
  throw new InvalidLockOptionsError(`${option} must be ${explained}, not ${describeValue(value)}.`, option);
}

/** Tells an operator which process it is, and is new with every start: a dead instance never answers for a live one. */
function defaultInstanceId(): string {
  const host = hostname()
    .replace(/[^\w.-]/g, '_')
    .slice(0, 60);
  return `${host}:${process.pid}:${Math.random().toString(36).slice(2, 8).padEnd(6, '0')}`;
}
