import {
  ANY_NUMBER,
  ANY_VALUE,
  assertAbove,
  assertAtLeast,
  assertAtMost,
  assertBelow,
  assertContains,
  assertEquals,
  assertExcludes,
  assertLacks,
  assertMatches,
} from './asserts.js';

const held = (): object => ({ mode: 'read', holders: [{ id: 'a', depth: 1 }, { id: 'b' }], ttlMs: 7 });

describe('assertEquals', () => {
  it.each([
    [1, 1],
    [null, null],
    [undefined, undefined],
    [{ a: 1, b: undefined }, { a: 1 }],
    [{ a: 1 }, { a: 1, b: undefined }],
    [5, ANY_NUMBER],
    [
      { ttlMs: 5, seen: { holders: [] } },
      { ttlMs: ANY_NUMBER, seen: ANY_VALUE },
    ],
    [[{ ttlMs: 5 }], [{ ttlMs: ANY_NUMBER }]],
    [held(), held()],
  ])('accepts %j for %j', (actual, expected) => {
    expect(() => assertEquals(actual, expected)).not.toThrow();
  });

  it.each([
    [1, 2],
    [1, '1'],
    [null, undefined],
    [undefined, {}],
    [{ a: 1, b: 2 }, { a: 1 }],
    [{ a: 1 }, { a: 1, b: 2 }],
    ['5', ANY_NUMBER],
    [undefined, ANY_VALUE],
    [null, ANY_VALUE],
    [{}, { seen: ANY_VALUE }],
    [[1], [1, 2]],
    [[1, 2], [1]],
    [
      [2, 1],
      [1, 2],
    ],
    [[], {}],
    [{}, []],
  ])('refuses %j for %j', (actual, expected) => {
    expect(() => assertEquals(actual, expected)).toThrow('strictly deep-equal');
  });

  it('shows where values differ, and a placeholder where they do not', () => {
    const differ = (): void => assertEquals({ status: 'busy', ttlMs: 5 }, { status: 'granted', ttlMs: ANY_NUMBER });
    expect(differ).toThrow(/-? *status: 'granted'[\s\S]*ttlMs: '<a number>'/);
  });
});

describe('assertMatches', () => {
  it.each([
    [held(), { mode: 'read' }],
    [held(), { holders: [{ id: 'a' }, {}] }],
    [held(), { ttlMs: ANY_NUMBER, other: undefined }],
  ])('accepts %j for %j', (actual, expected) => {
    expect(() => assertMatches(actual, expected)).not.toThrow();
  });

  it.each([
    [held(), { mode: 'write' }],
    [held(), { holders: [{ id: 'a' }] }],
    [held(), { holders: [{ id: 'b' }, {}] }],
    [held(), { waiters: [] }],
    [undefined, {}],
    [null, {}],
  ])('refuses %j for %j', (actual, expected) => {
    expect(() => assertMatches(actual, expected)).toThrow('strictly deep-equal');
  });
});

describe('the other assertions', () => {
  it('compare numbers, and refuse what is none', () => {
    assertAbove(2, 1);
    assertAtLeast(1, 1);
    assertBelow(0, 1);
    assertAtMost(1, 1);
    expect(() => assertAbove(1, 1)).toThrow('1 is not more than 1');
    expect(() => assertAtLeast(0, 1)).toThrow('0 is less than 1');
    expect(() => assertBelow(1, 1)).toThrow('1 is not less than 1');
    expect(() => assertAtMost(2, 1)).toThrow('2 is more than 1');
    for (const compare of [assertAbove, assertAtLeast, assertBelow, assertAtMost]) {
      expect(() => compare(undefined, 1)).toThrow('undefined is ');
      expect(() => compare(NaN, 1)).toThrow('NaN is ');
    }
  });

  it('look for what a list or an object has', () => {
    assertContains([{ a: 1 }, 2], [2, { a: ANY_NUMBER }]);
    expect(() => assertContains([1, 2], [3])).toThrow('strictly deep-equal');
    assertExcludes(['a'], 'b');
    expect(() => assertExcludes('a secret', 'secret')).toThrow('"a secret" contains "secret"');
    assertLacks({ a: 1, b: undefined }, 'b');
    expect(() => assertLacks({ a: 1 }, 'a')).toThrow('a is 1');
    expect(() => assertLacks(undefined, 'a')).toThrow('there is no object that could have a');
  });
});
