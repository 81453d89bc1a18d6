import type { ForeignClient, ForeignLock, ForeignRun } from '../core/api/foreign-lock.js';
import { InvalidLockOptionsError, quoteResource } from '../core/api/errors.js';
import {
  callback,
  checked,
  describeValue,
  keyFunctionThrew,
  type OptionsOf,
  OptionTable,
  wrongValue,
} from '../core/api/validation.js';
import { locationOf, type RedisConnectionOption, statedConnection } from '../redis/connection/connection-options.js';
import { ForeignServer } from './foreign-server.js';
import { KeyClaim } from './key-claim.js';
import { QuorumClaim } from './quorum-claim.js';

/** The key of the old code for a resource of ours; `undefined` where the old code has no lock for it. */
export type ForeignKey = (resource: string) => string | undefined;

/** What all locks of other libraries take. */
export interface ForeignKeyOptions {
  /**
   * What the old code calls the lock, for each of our resources. Where it returns `undefined`, only our lock is taken.
   *
   * @allowed a function
   * @default the name of the resource
   */
  key?: ForeignKey;
}

/** The Redis of the old code. */
export interface ForeignClientOption {
  /**
   * The Redis of the old code: its ioredis client, or the same URL or options. The database and the `keyPrefix` of it
   * are used. A client is duplicated, and never changed or closed.
   *
   * @allowed as for `connection` of the module
   */
  client: RedisConnectionOption;
}

/** One Redis of the old code, or several. */
export interface ForeignClientsOption {
  /**
   * The Redis of the old code, where it has one: its ioredis client, or the same URL or options. The database and the
   * `keyPrefix` of it are used. A client is duplicated, and never changed or closed.
   *
   * @allowed as for `connection` of the module
   * @default none; give either this or `clients`
   */
  client?: RedisConnectionOption;
  /**
   * The same, where the old code takes its lock on several independent servers: all of them. The lock counts where a
   * majority of them has it.
   *
   * @allowed one or more
   * @default none
   */
  clients?: readonly RedisConnectionOption[];
}

const FOREIGN_KEY = callback<ForeignKey>();
export const FOREIGN_CLIENT = checked<RedisConnectionOption>(checkClient);
const FOREIGN_CLIENTS = checked<readonly RedisConnectionOption[]>(checkClients);

/** The options of a library whose lock is on one server. */
export const CLIENT_AND_KEY = new OptionTable({
  client: FOREIGN_CLIENT.required(),
  key: FOREIGN_KEY,
} satisfies OptionsOf<ForeignClientOption & ForeignKeyOptions>);

/** The options of a library whose lock may be on several servers. */
export const CLIENTS_AND_KEY = new OptionTable({
  key: FOREIGN_KEY,
  client: FOREIGN_CLIENT,
  clients: FOREIGN_CLIENTS,
} satisfies OptionsOf<ForeignClientsOption & ForeignKeyOptions>);

/** What {@link redlock} takes. */
export interface RedlockOptions extends ForeignClientsOption, ForeignKeyOptions {}

/**
 * The locks of `redlock`, version 4 and 5, for the option `alsoLock`. The key is the resource of `redlock.acquire()`.
 *
 * @throws InvalidLockOptionsError
 */
export function redlock(options: RedlockOptions): ForeignLock {
  CLIENTS_AND_KEY.check('redlock', options);
  const keyOf = foreignKey('redlock', options.key);
  return keyLock({ library: 'redlock', clients: readClients('redlock', options), keyOf });
}

/** What {@link redisSemaphore} takes. */
export interface RedisSemaphoreOptions extends ForeignClientsOption, ForeignKeyOptions {}

/**
 * The `Mutex` of `redis-semaphore`, and with `clients` its `RedlockMutex`, for the option `alsoLock`. The key is what
 * the old code passes to the constructor, without the prefix `mutex:` that the library adds. Its semaphores are not
 * supported: let both releases use them until all old processes are gone.
 *
 * @throws InvalidLockOptionsError
 */
export function redisSemaphore(options: RedisSemaphoreOptions): ForeignLock {
  CLIENTS_AND_KEY.check('redisSemaphore', options);
  const nameOf = foreignKey('redisSemaphore', options.key);
  const mutex = (resource: string): string | undefined => {
    const name = nameOf(resource);
    return name === undefined ? undefined : `mutex:${name}`;
  };
  return keyLock({ library: 'redis-semaphore', clients: readClients('redisSemaphore', options), keyOf: mutex });
}

/** What {@link murlock} takes. */
export interface MurlockOptions extends ForeignClientOption, ForeignKeyOptions {
  /**
   * The key of murlock for each of our resources. `@MurLock(5000, 'id')` on `OrderService.pay(id)` makes the key
   * `OrderService:pay:<id>`; with `lockKeyPrefix: 'custom'` it is `<id>`. Where it returns `undefined`, only our lock is
   * taken.
   *
   * @allowed a function
   * @default the name of the resource
   */
  key?: ForeignKey;
}

/**
 * The locks of `murlock`, for the option `alsoLock`. murlock itself connects by node-redis: give `client` the same URL,
 * or an ioredis client of the same Redis.
 *
 * @throws InvalidLockOptionsError
 */
export function murlock(options: MurlockOptions): ForeignLock {
  CLIENT_AND_KEY.check('murlock', options);
  return keyLock({ library: 'murlock', clients: [options.client], keyOf: foreignKey('murlock', options.key) });
}

/** A lock that is one string with an expiry, on one server or on a majority of several. */
interface KeyLockSettings {
  readonly library: string;
  readonly clients: readonly RedisConnectionOption[];
  /** Its answers are checked already, see {@link foreignKey}. */
  readonly keyOf: ForeignKey;
  /** The value of the key, made of an id that no other owner has. @default the id */
  readonly value?: ((id: string) => string) | undefined;
  /** How long the key stays at least, counted from when it was set. @default 0 */
  readonly keepMs?: number | undefined;
}

export function keyLock({ library, clients, keyOf, value = (id) => id, keepMs }: KeyLockSettings): ForeignLock {
  return {
    library,
    keyOf,
    open(context): ForeignClient {
      const servers = clients.map((client) => new ForeignServer(client, context));
      return {
        claim(name, run) {
          // Every server of a quorum has the same value.
          const owner = value(ownerId(context.randomId(), run));
          const claims = servers.map(
            (server) => new KeyClaim(server, name, { value: owner, run, keepMs }, context.now),
          );
          return claims.length === 1 ? claims[0]! : new QuorumClaim(claims);
        },
        async close() {
          await Promise.all(servers.map((server) => server.close()));
        },
      };
    },
  };
}

/** What names an owner in the data of the other library. */
export function ownerId(id: string, run: ForeignRun | undefined): string {
  return run ? `${run.name}${run.token}:${id}` : id;
}

/**
 * The servers of a lock that may be on several.
 *
 * @throws InvalidLockOptionsError unless exactly one of the two options is given
 */
export function readClients(
  library: string,
  options: ForeignClientsOption,
): readonly [RedisConnectionOption, ...RedisConnectionOption[]] {
  const { client, clients } = options;
  if (client === undefined && clients === undefined) {
    if ('client' in options) checkClient('client', client);
    if ('clients' in options) checkClients('clients', clients);
  }
  if ((client === undefined) === (clients === undefined)) {
    throw new InvalidLockOptionsError(
      `${library}() takes either client, the Redis of the old code, or clients, all servers that it votes on.`,
      'client',
    );
  }
  return client === undefined ? (clients as readonly [RedisConnectionOption]) : [client];
}

/** @returns a client whose options say where its Redis is */
function checkClient(option: string, client: unknown): ReturnType<typeof statedConnection>['model'] {
  const refuse = (what: string): never => {
    throw new InvalidLockOptionsError(
      `${option} must be the Redis of the old code: its ioredis client, or the same URL or options, not ${what}.`,
      option,
    );
  };
  if (client === undefined) refuse('undefined (is an environment variable not set?)');
  if (client === 'memory:') refuse("'memory:', where no other library keeps its locks");
  try {
    return statedConnection(client as RedisConnectionOption).model;
  } catch (error) {
    if (!(error instanceof InvalidLockOptionsError)) throw error;
    throw new InvalidLockOptionsError(error.message.replace(/^connection/, option), option);
  }
}

function checkClients(option: string, clients: unknown): void {
  if (!Array.isArray(clients) || clients.length === 0) {
    throw wrongValue(option, 'an array of one or more clients', clients);
  }
  const names = clients.map((client, index) => locationOf(checkClient(`${option}[${index}]`, client)));
  names.forEach((name, index) => {
    const first = names.indexOf(name);
    if (first === index) return;
    throw new InvalidLockOptionsError(
      `${option}[${first}] and ${option}[${index}] are the same Redis: each server has one vote. State every server of the ` +
        'old code once, or give client where it has one.',
      option,
    );
  });
}

/**
 * The key function of the user, with its answers checked.
 *
 * @param source the function that makes the lock, such as `redlock`
 */
export function foreignKey(source: string, key: ForeignKey = (resource) => resource): ForeignKey {
  return (resource) => {
    let found: unknown;
    try {
      found = key(resource);
    } catch (error) {
      throw keyFunctionThrew(`${source}() (alsoLock), called for ${quoteResource(resource)},`, error);
    }
    if (found === undefined || isKey(found)) return found;
    // Its rejection would end the process.
    if (found instanceof Promise) found.catch(() => {});
    throw new InvalidLockOptionsError(
      `The key function of ${source}() (alsoLock) must return the key of the old code, or undefined where it has none. ` +
        `For ${quoteResource(resource)}, it returned ${describeKey(found)}.`,
      'key',
    );
  };
}

/** Redis would get the same replacement character for every lone surrogate, and different keys would be one. */
export function isKey(key: unknown): key is string {
  return typeof key === 'string' && key !== '' && key.isWellFormed();
}

export function describeKey(key: unknown): string {
  const isIllFormed = typeof key === 'string' && key !== '';
  return isIllFormed ? `${describeValue(key)}, which is not well-formed Unicode` : describeValue(key);
}
