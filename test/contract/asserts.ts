import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';

/** A place in an expected value that accepts more than one value. */
class Placeholder {
  constructor(
    /** Replaces the value in a failure. */
    readonly text: string,
    readonly accepts: (value: unknown) => boolean,
  ) {}
}

export const ANY_NUMBER = new Placeholder('<a number>', (value) => typeof value === 'number');
export const ANY_VALUE = new Placeholder('<anything>', (value) => value !== undefined && value !== null);

/** Both are the same. A property that is `undefined` counts as absent. */
export function assertEquals(actual: unknown, expected: unknown): void {
  assert.deepEqual(...comparable(actual, expected, false));
}

/** The same, but objects may have properties that are not expected. */
export function assertMatches(actual: unknown, expected: unknown): void {
  assert.deepEqual(...comparable(actual, expected, true));
}

/** Each of the expected values is in the list, in any order. */
export function assertContains(actual: readonly unknown[], expected: readonly unknown[]): void {
  const isThere = (one: unknown): boolean => actual.some((it) => isDeepStrictEqual(...comparable(it, one, false)));
  if (!expected.every(isThere)) assertEquals(actual, expected);
}

export function assertExcludes(actual: string | readonly string[], text: string): void {
  assert.ok(!actual.includes(text), `${JSON.stringify(actual)} contains ${JSON.stringify(text)}`);
}

/** The object is there, and has no such property. */
export function assertLacks(actual: object | undefined, property: string): void {
  assert.ok(actual, `there is no object that could have ${property}`);
  assert.equal(Object(actual)[property], undefined, `${property} is ${String(Object(actual)[property])}`);
}

export function assertAbove(actual: number | undefined, limit: number): void {
  assert.ok(actual !== undefined && actual > limit, `${actual} is not more than ${limit}`);
}

export function assertAtLeast(actual: number | undefined, limit: number): void {
  assert.ok(actual !== undefined && actual >= limit, `${actual} is less than ${limit}`);
}

export function assertBelow(actual: number | undefined, limit: number): void {
  assert.ok(actual !== undefined && actual < limit, `${actual} is not less than ${limit}`);
}

export function assertAtMost(actual: number | undefined, limit: number): void {
  assert.ok(actual !== undefined && actual <= limit, `${actual} is more than ${limit}`);
}

/** Returns two copies, equal if the values are alike, so that a failure shows only the differences. */
function comparable(actual: unknown, expected: unknown, isPart: boolean): [actual: unknown, expected: unknown] {
  if (expected instanceof Placeholder) return [expected.accepts(actual) ? expected.text : actual, expected.text];
  if (Array.isArray(actual) && Array.isArray(expected)) {
    const pairs = expected.map((each, index) => comparable(actual[index], each, isPart));
    const compared = pairs.slice(0, actual.length).map(([one]) => one);
    return [[...compared, ...actual.slice(pairs.length)], pairs.map(([, other]) => other)];
  }
  if (isObject(actual) && isObject(expected)) {
    const copies: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
    for (const name of new Set([...Object.keys(isPart ? {} : actual), ...Object.keys(expected)])) {
      const pair = comparable(actual[name], expected[name], isPart);
      for (const [index, value] of pair.entries()) if (value !== undefined) copies[index]![name] = value;
    }
    return copies;
  }
  return [actual, expected];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
