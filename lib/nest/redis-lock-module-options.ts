import { hostname } from 'node:os';
import { InvalidLockOptionsError } from '../core/errors.js';
import type { LockObserver } from '../core/events.js';
import { type LockDefaults, resolveLockDefaults } from '../core/lock-options.js';
import { checkBoolean, checkFunction, checkInteger, checkKnownOptions, describeValue } from '../core/validation.js';
import type { RedisConnectionOption } from '../redis/redis-connection.js';

/** The `connection` that keeps the locks in this process. */
export const IN_MEMORY = 'memory:';

/** What `RedisLockModule.forRoot` takes, and the factories of `forRootAsync` give. */
export interface RedisLockModuleOptions extends Partial<LockDefaults> {
  /**
   * Where Redis is: a URL, the path of a socket, ioredis options, or an ioredis client of yours. A client is duplicated, never changed or
   * closed. `'memory:'` keeps the locks in this process, for tests without a Redis.
   */
  connection: RedisConnectionOption;
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
  /** Called with everything that happens to a lock. Losses and failures are logged in any case. @default none */
  observers?: readonly LockObserver[];
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
  readonly connection: () => RedisConnectionOption;
  readonly keyPrefix: string;
  readonly instanceId: string;
  readonly defaults: LockDefaults;
  readonly observers: readonly LockObserver[];
  readonly drainMs: number;
}

const OPTION_NAMES = [
  'connection',
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
  'observers',
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
  const { connection, keyPrefix = 'lock', instanceId = defaultInstanceId(), observers = [], shutdown = {} } = options;
  if (connection === undefined) {
    throw new InvalidLockOptionsError(
      'connection is missing: give a URL such as redis://localhost:6379, ioredis options, or an ioredis client.',
      'connection',
    );
  }
  checkText('keyPrefix', keyPrefix, /^[^{}\s\p{C}]{1,100}$/u, '1 to 100 characters without braces or white space');
  checkText('instanceId', instanceId, /^[\w.:@-]{1,100}$/, '1 to 100 of A-Z a-z 0-9 _ . : @ -');
  if (!Array.isArray(observers)) {
    throw new InvalidLockOptionsError(`observers must be an array, not ${describeValue(observers)}.`, 'observers');
  }
  observers.forEach((observer, index) => checkFunction(`observers[${index}]`, observer));
  checkKnownOptions('shutdown', shutdown, ['drainMs']);
  checkInteger('shutdown.drainMs', shutdown.drainMs, 0, LONGEST_DRAIN_MS);
  return {
    connection: () => connection,
    keyPrefix,
    instanceId,
    defaults: resolveLockDefaults(options, 'RedisLockModule'),
    observers,
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
