import { InvalidLockOptionsError, InvalidResourceError } from './errors.js';
import { quote } from '../util/quoted.js';
import { describeValue, wrongValue } from './validation.js';

/** The longest resource name, in bytes of UTF-8. */
const MAX_RESOURCE_BYTES = 512;

/** The prefix of the resources of singleton jobs. The job's name follows. No other lock may have such a name. */
export const JOB_PREFIX = 'cron:';
/** The same for leaderships. */
export const LEADER_PREFIX = 'leader:';
/** The same for calls of `once`. */
const ONCE_PREFIX = 'once:';

/** The reserved prefixes, and what each is reserved for. */
const RESERVED = [
  { prefix: JOB_PREFIX, owner: 'the runs of singleton jobs' },
  { prefix: LEADER_PREFIX, owner: 'leaderships' },
  { prefix: ONCE_PREFIX, owner: 'calls of once()' },
];

const ONE = `a non-empty string of at most ${MAX_RESOURCE_BYTES} bytes`;
const SEVERAL = `${ONE}, or a non-empty array of them`;

/** One name or several, as a caller passes them. */
export type ResourceNames = string | readonly string[];

/**
 * Checks the resources that a caller passed or a key function returned. Returns distinct names in one fixed order: two
 * callers that name the same resources in different orders never wait for each other.
 */
export function checkResources(resource: unknown, source: string, check = checkOwnResource): readonly string[] {
  if (typeof resource === 'string') return [check(resource, source, SEVERAL)];
  if (!Array.isArray(resource))
    throw invalid(source, `${describeValue(resource)} is not a string or an array of strings`, SEVERAL);
  if (resource.length === 0) throw invalid(source, 'the array is empty', SEVERAL);
  if (resource.length === 1) return [check(resource[0], source, SEVERAL)];
  // Array.from, because map() passes over the holes of an array.
  const names = Array.from(resource, (name: unknown) => check(name, source, SEVERAL));
  return [...new Set(names)].sort(byCodeUnit);
}

/** Not localeCompare: every instance must sort the same way, in any locale. */
function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @param allowed the allowed names, for the message */
export function checkResource(name: unknown, source: string, allowed = ONE): string {
  if (typeof name !== 'string') throw invalid(source, `${describeValue(name)} is not a string`, allowed);
  if (name === '') throw invalid(source, 'the name is empty', allowed, InvalidResourceError);
  // The length is checked first because that is cheaper: a UTF-16 unit takes at most three bytes.
  if (name.length * 3 > MAX_RESOURCE_BYTES && Buffer.byteLength(name) > MAX_RESOURCE_BYTES) {
    const why = `the name has ${Buffer.byteLength(name)} bytes, more than ${MAX_RESOURCE_BYTES}`;
    throw invalid(source, why, allowed, InvalidResourceError);
  }
  // Redis would get the same replacement character for every lone surrogate, and different names would be one lock.
  if (!name.isWellFormed()) {
    const why = 'the name has a lone surrogate, so it is not well-formed Unicode';
    throw invalid(source, why, allowed, InvalidResourceError);
  }
  return name;
}

/**
 * Checks the name of a resource to lock. A name that comes from outside, such as the id in a URL, must not hold the
 * lock of a job, of a leadership or of a call of `once`.
 */
export function checkOwnResource(name: unknown, source: string, allowed = ONE): string {
  const resource = checkResource(name, source, allowed);
  for (const { prefix, owner } of RESERVED) {
    if (!resource.startsWith(prefix)) continue;
    throw invalid(
      source,
      `names that begin with "${prefix}" belong to ${owner}`,
      `${allowed}. Add your own prefix to names that come from outside`,
      InvalidResourceError,
    );
  }
  return resource;
}

/** The output of a template string for a missing value, or one that has no text. */
const UNCLEAR = /(?:^|[:/|#])(undefined|null|NaN)(?=$|[:/|#])|\[object [^\]]*\]/;

/**
 * Checks the name of a resource to lock. Refuses a name in which a template string has put a missing value, such as
 * `order:undefined`: all calls without the value would share one lock.
 */
export function checkClearResource(name: unknown, source: string, allowed = ONE): string {
  const resource = checkOwnResource(name, source, allowed);
  const unclear = UNCLEAR.exec(resource);
  if (unclear === null) return resource;
  const [part, word = part] = unclear;
  throw invalid(
    source,
    `${quote(word, 60)} in ${quote(resource, 100)} comes from a missing value in a template string, and different calls ` +
      'would share one lock',
    `${allowed}. The tag "key" shows which value is missing: key\`order:\${id}\`. If the name is right, set ` +
      `suspiciousNames: 'allow' in the options of the module`,
    InvalidResourceError,
  );
}

/** The resource of a leadership. @param name the user's name for it */
export function leaderResource(name: unknown, source: string): string {
  return prefixed(LEADER_PREFIX, checkOwnResource(name, source), source);
}

/** The resource that a call of `once` holds. @param name the user's key, checked */
export function onceResource(name: string): string {
  return prefixed(ONCE_PREFIX, name, 'once');
}

/** The resource that the runs of a job hold. */
export function jobResource(job: string): string {
  const source = 'a singleton job as its name';
  return prefixed(JOB_PREFIX, checkResource(job, source), source);
}

/** @throws InvalidLockOptionsError when the user's name is too long to have the prefix */
function prefixed(prefix: string, name: string, source: string): string {
  const resource = prefix + name;
  const bytes = Buffer.byteLength(resource);
  if (bytes <= MAX_RESOURCE_BYTES) return resource;
  const longest = MAX_RESOURCE_BYTES - prefix.length;
  const why = `${quote(name, 60)} has ${bytes - prefix.length} bytes, more than the ${longest} that the prefix "${prefix}" leaves`;
  throw invalid(source, why, ONE, InvalidResourceError);
}

function invalid(source: string, why: string, allowed: string, Kind = InvalidLockOptionsError): Error {
  return new Kind(`The resource given to ${source} cannot be used: ${why}. A resource is ${allowed}.`, 'resource');
}

/** The error for a resource that the lease does not hold. */
export function notAmong(held: readonly string[], resource: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `This lease does not hold ${describeValue(resource)}. It holds ${held.map(describeValue).join(', ')}.`,
    'resource',
  );
}

/** The error for one token of resources that are numbered separately. */
export function severalOrders(held: readonly string[]): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `The tokens of ${held.map(describeValue).join(', ')} cannot be compared: Redis Cluster numbers the leases of each ` +
      'slot separately. Send the token of the resource that a write changes: fencingTokenOf(resource).',
    'fencingToken',
  );
}

/** @throws InvalidLockOptionsError if the store does not support it */
export function assertSupported(what: string, name: string, why: string | undefined): void {
  if (why === undefined) return;
  throw new InvalidLockOptionsError(`The ${what} ${describeValue(name)} cannot be used: ${why}.`, 'quorum');
}

/** The values allowed in a {@link key}: each of them has one unambiguous text. */
export type KeyValue = string | number | bigint | boolean;

/**
 * The tag for resource names. It rejects missing values, which a plain template string would hide: `order:undefined`
 * would be one lock for all requests without the parameter.
 *
 * ```ts
 * const keyOf = (id: string) => key`order:${id}`; // for a decorator
 * await locks.using(key`order:${order.id}`, work);
 * ```
 *
 * @throws InvalidResourceError for values that a client's request can cause: `undefined`, `null`, an empty string,
 *   `NaN`, `Infinity` or an object
 * @throws InvalidLockOptionsError for a symbol or a function
 */
export function key(texts: TemplateStringsArray, ...values: readonly KeyValue[]): string {
  if (!Array.isArray(texts?.raw)) {
    throw new InvalidLockOptionsError('key is a tag for template strings: key`order:${id}`.', 'key');
  }
  let name = texts[0]!;
  for (const [index, value] of values.entries()) {
    if (!isClear(value)) throw unclear(texts, index, value);
    name += String(value) + texts[index + 1]!;
  }
  return name;
}

function isClear(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value === 'string' ? value !== '' : typeof value === 'bigint' || typeof value === 'boolean';
}

function unclear(texts: readonly string[], index: number, value: unknown): InvalidLockOptionsError {
  const before = texts[index]!.length > 40 ? `...${texts[index]!.slice(-37)}` : texts[index]!;
  // The others may be what a client has sent, or left out.
  const isOfProgram = typeof value === 'symbol' || typeof value === 'function';
  const Kind = isOfProgram ? InvalidLockOptionsError : InvalidResourceError;
  return new Kind(
    `Value ${index + 1} of a key, after ${quote(before)}, is ${describeValue(value)}. Different calls would share one lock. ` +
      `Pass a non-empty string, a finite number, a bigint or a boolean.`,
    'key',
  );
}

export const MAX_GROUP = 100;
/** The characters of a group. */
export const GROUP = /^[\p{L}\p{N}_$.\-/#:() ]{1,100}$/u;

/** Makes a name of the program a group: of a method whose name is a symbol, of a job or a leadership. */
export function groupNamed(name: string): string {
  if (GROUP.test(name)) return name;
  // By code points: half of a letter is none.
  return (
    Array.from(name.replace(/[^\p{L}\p{N}_$.\-/#:() ]/gu, '_'))
      .slice(0, MAX_GROUP)
      .join('') || '_'
  );
}

/** @throws InvalidLockOptionsError unless it can be a group */
export function checkGroup(option: string, group: unknown): void {
  if (typeof group === 'string' && GROUP.test(group)) return;
  throw wrongValue(option, `a name of 1 to ${MAX_GROUP} letters, digits, spaces and _ $ . - / # : ( )`, group);
}
