import { InvalidLockOptionsError } from './errors.js';
import { describeValue } from './validation.js';

/** The longest resource name, in bytes of UTF-8. */
export const MAX_RESOURCE_BYTES = 512;

/** One name or several, as a caller gives them. */
export type ResourceNames = string | readonly string[];

/**
 * Checks what a caller, or a key function, gave as resources. Gives one or more distinct names in one fixed order, so
 * that two callers who name the same resources in different orders can never wait for each other.
 *
 * @param source who gave them, for the message: `acquire`, or the decorated method
 * @throws InvalidLockOptionsError for anything but non-empty well-formed strings of at most 512 bytes
 */
export function checkResources(resource: unknown, source: string): readonly string[] {
  if (typeof resource === 'string') return [checkResource(resource, source)];
  if (!Array.isArray(resource))
    throw invalid(source, `${describeValue(resource)} is not a string or an array of strings`);
  if (resource.length === 0) throw invalid(source, 'the array is empty');
  if (resource.length === 1) return [checkResource(resource[0], source)];
  return [...new Set(resource.map((name: unknown) => checkResource(name, source)))].sort(byCodeUnit);
}

/** Not localeCompare: every instance must sort alike, whatever its locale. */
function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Checks one name. @throws InvalidLockOptionsError */
export function checkResource(name: unknown, source: string): string {
  if (typeof name !== 'string') throw invalid(source, `${describeValue(name)} is not a string`);
  if (name === '') throw invalid(source, 'the name is empty');
  // The quick check spares the byte count for nearly every name: no character takes more than three bytes a unit.
  if (name.length * 3 > MAX_RESOURCE_BYTES && Buffer.byteLength(name) > MAX_RESOURCE_BYTES) {
    throw invalid(source, `the name has ${Buffer.byteLength(name)} bytes, more than ${MAX_RESOURCE_BYTES}`);
  }
  // Redis would get the same replacement character for every lone surrogate, and different names would be one lock.
  if (!name.isWellFormed()) throw invalid(source, 'the name has a lone surrogate, so it is not well-formed Unicode');
  return name;
}

function invalid(source: string, why: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `The resource given to ${source} cannot be used: ${why}. ` +
      `A resource is a non-empty string of at most ${MAX_RESOURCE_BYTES} bytes, or a non-empty array of them.`,
    'resource',
  );
}

/** A lease was asked for a resource that is none of its own. */
export function notAmong(held: readonly string[], resource: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `This lease does not hold ${describeValue(resource)}, but ${held.map(describeValue).join(', ')}.`,
    'resource',
  );
}
