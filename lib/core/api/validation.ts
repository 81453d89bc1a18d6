import { InvalidLockOptionsError, InvalidResourceError } from './errors.js';
import { describeThrown, escapeText, quote } from '../util/quoted.js';

/** Describes a value for a message: short, quoted, and without the content of objects. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return quote(value, 60);
  if (value === null || typeof value !== 'object') return typeof value === 'function' ? 'a function' : String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return `an object (${classOf(value)})`;
}

function classOf(value: object): string {
  try {
    const name: unknown = value.constructor?.name;
    return typeof name === 'string' ? escapeText(name) : 'no prototype';
  } catch {
    return 'of an unknown class';
  }
}

/** The error for an option with a value that it cannot have. @param allowed what it must be */
export function wrongValue(option: string, allowed: string, value: unknown): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${option} must be ${allowed}, not ${describeValue(value)}.`, option);
}

/** A name longer than any option name: no option is suggested for it. */
const LONGEST_NAME = 40;

/** Checks an integer option in a range, both ends included. */
export function checkInteger(option: string, value: unknown, min: number, max: number, unit = 'milliseconds'): void {
  if (isIntegerBetween(value, min, max)) return;
  const range = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  throw wrongValue(option, `an integer ${range} (${unit})`, value);
}

/** Checks an integer option that may be `Infinity`. */
export function checkIntegerOrInfinity(option: string, value: unknown, min: number, unit: string): void {
  if (value === Infinity || isIntegerBetween(value, min, Number.MAX_SAFE_INTEGER)) return;
  throw wrongValue(option, `an integer of ${min} or more (${unit}) or Infinity`, value);
}

function isIntegerBetween(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

export function checkBoolean(option: string, value: unknown): void {
  if (typeof value === 'boolean') return;
  throw wrongValue(option, 'true or false', value);
}

export function checkFunction(option: string, value: unknown): void {
  if (typeof value === 'function') return;
  throw wrongValue(option, 'a function', value);
}

export function checkOneOf(option: string, value: unknown, allowed: readonly string[]): void {
  if (allowed.includes(value as string)) return;
  const list = allowed.map((name) => `'${name}'`).join(', ');
  throw wrongValue(option, `one of ${list}`, value);
}

/** @param where whose key function it is, for the message */
export function keyFunctionThrew(where: string, error: unknown): InvalidLockOptionsError {
  const Kind = error instanceof InvalidResourceError ? InvalidResourceError : InvalidLockOptionsError;
  return new Kind(`The key function of ${where} threw: ${describeThrown(error)}`, 'key', { cause: error });
}

/** @throws InvalidLockOptionsError for anything but a function */
export function checkWork<W extends (...args: never[]) => unknown>(work: W | undefined, source = 'using'): W {
  if (typeof work === 'function') return work;
  throw new InvalidLockOptionsError(
    `${source} needs a function to run under the lock, not ${describeValue(work)}.`,
    'work',
  );
}

/** Whether the code of what the work returned runs while it is read, which is after the lock. */
export function isGenerator(result: unknown): result is Generator | AsyncGenerator {
  return result !== null && typeof result === 'object' && GENERATOR.test(Object.prototype.toString.call(result));
}

const GENERATOR = /^\[object (Async)?Generator\]$/;

/**
 * Ends the generator, which has not begun.
 *
 * @param lock what the work ran under, for the message
 * @param work names the work, if it has a name
 * @returns the error for the caller
 */
export function refuseGenerator(
  generator: Generator | AsyncGenerator,
  lock: string,
  work = 'The work',
): InvalidLockOptionsError {
  const ended: unknown = generator.return(undefined);
  if (ended instanceof Promise) ended.catch(() => {});
  return new InvalidLockOptionsError(
    `${work} returned a generator under ${lock}. The code of a generator runs while it is read, when the lock is ` +
      'released already. Lock inside of the generator, with using(), or return all values at once. ' +
      'A handler whose values Nest sends needs @LockHandler.',
    'work',
  );
}

/** Checks a string against a pattern. @param explained what the pattern allows, for the message */
export function checkText(option: string, value: unknown, allowed: RegExp, explained: string): void {
  if (typeof value === 'string' && allowed.test(value) && value.isWellFormed()) return;
  throw wrongValue(option, explained, value);
}

export function checkSignal(option: string, value: unknown): void {
  if (value instanceof AbortSignal) return;
  throw wrongValue(option, 'an AbortSignal', value);
}

/** Refuses anything but an options object with these keys, and suggests the key that was probably meant. */
export function checkKnownOptions(where: string, options: unknown, known: readonly string[]): void {
  checkIsObject(where, options);
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw unknownOption(where, name, known);
  }
}

/** @throws InvalidLockOptionsError for `null`, an array, and anything that is not an object */
export function checkIsObject(where: string, options: unknown): asserts options is object {
  if (options !== null && typeof options === 'object' && !Array.isArray(options)) return;
  // A string in the place of options may be a connection URL with its password, or a transferred lease.
  const given = typeof options === 'string' ? 'a string' : describeValue(options);
  const isTime = typeof options === 'number' && where === 'lock options';
  const advice = isTime ? ` Say which time it is: { waitMs: ${options} } or { leaseMs: ${options} }.` : '';
  throw new InvalidLockOptionsError(`${where} must be an object, not ${given}.${advice}`, where);
}

/** The error for an unknown option. It suggests the option that was probably meant. */
export function unknownOption(where: string, name: string, known: readonly string[]): InvalidLockOptionsError {
  const isPlural = where.endsWith(' options');
  const near = nearest(name, known);
  const advice =
    otherWord(name, known) ??
    (near ? `Did you mean ${near}?` : `${isPlural ? 'They know' : 'It knows'}: ${known.join(', ')}.`);
  return new InvalidLockOptionsError(
    `${where} ${isPlural ? 'do' : 'does'} not know the option ${describeValue(name)}. ${advice}`,
    name,
  );
}

/** What other libraries call our options. */
const OTHER_WORDS: readonly (readonly [ours: string, theirs: readonly string[]])[] = [
  ['leaseMs', ['ttl', 'ttlMs', 'expire', 'expiry', 'expires', 'expiresIn', 'duration', 'leaseTime', 'lockTimeout']],
  ['waitMs', ['timeout', 'timeoutMs', 'wait', 'waitTime', 'waitTimeout', 'acquireTimeout', 'maxWait']],
  ['retry', ['retries', 'retryCount', 'retryDelay', 'retryInterval', 'retryStrategy', 'attempts']],
  ['keyPrefix', ['prefix', 'namespace']],
  ['key', ['keys', 'resource', 'resources', 'lockKey']],
];

/** What says where Redis is, and how to write it. */
const OF_CONNECTION: readonly (readonly [shape: string, names: readonly string[]])[] = [
  ["'redis://localhost:6379'", ['url', 'uri', 'redisUrl', 'connectionString']],
  ['client', ['client', 'redis', 'ioredis', 'redisClient']],
  ['{ cluster: [...] }', ['cluster', 'nodes']],
  ["{ sentinels: [...], name: 'mymaster' }", ['sentinels', 'sentinel']],
  ["{ host: 'localhost', port: 6379 }", ['host', 'port', 'db', 'username', 'password', 'path', 'tls', 'redisOptions']],
];

/** The advice for an option that is known by another name, or that has another place. */
function otherWord(name: string, known: readonly string[]): string | undefined {
  const [ours] = OTHER_WORDS.find(([our, theirs]) => known.includes(our) && theirs.includes(name)) ?? [];
  if (ours === 'key') return `${name} is called key here, and takes several names too: key: ['a', 'b'].`;
  if (ours !== undefined) return `${name} is called ${ours} here.`;
  if (!known.includes('connection')) return undefined;
  const [shape] = OF_CONNECTION.find(([, names]) => names.includes(name)) ?? [];
  return shape && `Put it into connection: { connection: ${shape} }.`;
}

/** The known name within two edits, or with the same letters in another case. They have a letter in common. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST_NAME) return undefined;
  const scored = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = scored[0];
  if (!best || best.distance >= Math.max(name.length, best.candidate.length)) return undefined;
  return best.distance <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

/** Levenshtein distance (Wagner and Fischer, 1974), one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, substitution));
    }
    row = next;
  }
  return row[b.length]!;
}
