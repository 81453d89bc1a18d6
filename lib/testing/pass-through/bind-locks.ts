import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { describeValue } from '../../kernel/api/validation.js';
import { nearest } from '../../kernel/api/nearest.js';
import { isObject } from '../../kernel/util/objects.js';
import { quote, quoteSome } from '../../kernel/util/quoted.js';
import { declaredLockServices } from '../../nest/decorators/method.js';
import type { RedisLockService } from '../../nest/redis-lock.service.js';
import { DEFAULT_NAME } from '../../nest/service-parts.js';

/** The methods of a lock service that decorated methods call. */
const CALLED = ['using', 'semaphore', 'campaign', 'runSingleton'] as const satisfies (keyof RedisLockService)[];

/**
 * Lets the decorated methods of an object that you created with `new` run under these locks. Without it, calling such a
 * method throws `LockModuleMissingError`: a test that forgot the lock must not pass.
 *
 * ```ts
 * const shop = bindLocks(new Shop(), passThroughLocks());
 * ```
 *
 * This works for methods with `@DistributedLock`, `@ReadLock`, `@WriteLock`, `@DistributedSemaphore`, `@LeaderOnly`,
 * `@SingletonCron`, `@SingletonInterval` and `@SingletonTimeout`. `@LockHandler` needs a request, so a direct call of
 * such a handler acquires no lock.
 *
 * @param object an object of a class with decorated methods; a later call binds it to other locks
 * @param locks the lock service, or several by name: `{ default: locks, billing: otherLocks }`
 * @returns the object
 * @throws InvalidLockOptionsError if the object has no decorated methods or is frozen, if a lock service is missing or
 *   unused, or if a value is not a lock service; nothing was bound then
 */
export function bindLocks<T extends object>(
  object: T,
  locks: RedisLockService | Readonly<Record<string, RedisLockService>>,
): T {
  const properties = propertiesOf(object);
  const named = isLockService(locks) ? { [DEFAULT_NAME]: locks } : byName(locks);
  const { name } = object.constructor;
  for (const used of properties.keys()) {
    if (Object.hasOwn(named, used)) continue;
    const example = [...properties.keys()].map((each) => `${plainKey(each)}: locks`).join(', ');
    throw invalid(
      'locks',
      `${name} has methods that use the lock service ${quote(used)}, which was not passed to bindLocks. ` +
        `Call bindLocks(object, { ${example} }).`,
    );
  }
  for (const given of Object.keys(named)) {
    if (properties.has(given)) continue;
    const near = nearest(given, [...properties.keys()]);
    throw invalid(
      'locks',
      `No decorated method of ${name} uses the lock service ${quote(given)}. ` +
        (near === undefined ? `These are used: ${quoteSome([...properties.keys()])}.` : `Did you mean ${quote(near)}?`),
    );
  }
  if (![...properties.values()].every((property) => isDefinable(object, property))) {
    throw invalid(
      'object',
      `${name} is frozen or sealed, so no locks can be bound to it. Call bindLocks before you freeze or seal the object.`,
    );
  }
  for (const [used, property] of properties) {
    // Not enumerable, so that a test can compare the object with another one.
    Object.defineProperty(object, property, { value: named[used], configurable: true, writable: true });
  }
  return object;
}

function isDefinable(object: object, property: symbol): boolean {
  return Object.getOwnPropertyDescriptor(object, property)?.configurable ?? Object.isExtensible(object);
}

/** Returns the properties in which the decorated methods find their lock services, by name. */
function propertiesOf(object: unknown): ReadonlyMap<string, symbol> {
  if (!isObject(object)) {
    const what = typeof object === 'function' ? 'a class: pass new ' + (object.name || 'Class') + '(...)' : undefined;
    throw invalid('object', `bindLocks needs an object with decorated methods, not ${what ?? describeValue(object)}.`);
  }
  const properties = declaredLockServices(object);
  if (properties.size > 0) return properties;
  throw invalid(
    'object',
    `${object.constructor?.name || 'The object'} has no method with a decorator that takes a lock, so there is nothing ` +
      'to bind. Pass the locks to its constructor, or pass the object whose methods are decorated.',
  );
}

function byName(locks: unknown): Readonly<Record<string, RedisLockService>> {
  const isPlain = isObject(locks) && [Object.prototype, null].includes(Object.getPrototypeOf(locks) as object | null);
  // A mock has functions in place of lock services by name.
  const isMock = isPlain && Object.values(locks).some((value) => typeof value === 'function');
  if (!isPlain || isMock) throw invalid('locks', `locks must be a lock service, ${missingOf(locks)}`);
  for (const [name, service] of Object.entries(locks)) {
    if (isLockService(service)) continue;
    throw invalid(`locks.${name}`, `locks.${name} must be a lock service, ${missingOf(service)}`);
  }
  return locks as Readonly<Record<string, RedisLockService>>;
}

/** Not by its class: another copy of this package has another one. */
function isLockService(value: unknown): value is RedisLockService {
  return isObject(value) && missingMethods(value).length === 0;
}

function missingMethods(value: object): readonly string[] {
  return CALLED.filter((method) => typeof (value as Partial<RedisLockService>)[method] !== 'function');
}

function missingOf(value: unknown): string {
  const why = isObject(value) ? `and has no ${missingMethods(value).join(', ')}` : `not ${describeValue(value)}`;
  return `${why}. Pass passThroughLocks(), or the service of a testing module.`;
}

function plainKey(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function invalid(option: string, message: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(message, option);
}
