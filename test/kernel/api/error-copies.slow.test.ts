import { jest } from '@jest/globals';
import { rejects } from 'node:assert/strict';

type Package = typeof import('../../../lib/index.js');
type AnyErrorClass = new (...args: never[]) => Error;

/** Every entry point with errors of its own. */
const load = async (): Promise<Package> => ({
  ...(await import('../../../lib/index.js')),
  ...(await import('../../../lib/fence.js')),
  ...(await import('../../../lib/schedule.js')),
});

const here = await load();
jest.resetModules();
/** A second copy of the package, as a CommonJS library in an ES module application loads it. */
const there = await load();

function errorClassesOf(copy: Package): [name: string, errorClass: AnyErrorClass][] {
  const { LockError } = copy;
  return Object.entries(copy as unknown as Record<string, unknown>).flatMap(([name, value]) =>
    typeof value === 'function' && (value === LockError || Object.prototype.isPrototypeOf.call(LockError, value))
      ? [[name, value as AnyErrorClass] as [string, AnyErrorClass]]
      : [],
  );
}

/** An instance without the constructor, whose arguments differ from class to class. */
const instanceOf = (errorClass: AnyErrorClass): unknown => Object.create(errorClass.prototype as object);

const classes = errorClassesOf(here).map(([name, mine]) => {
  const [, other] = errorClassesOf(there).find(([each]) => each === name)!;
  return { name, mine, other };
});

it('each error class exists in two copies', () => {
  expect(classes.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['LockError', 'LockBusyError', 'LeaseLostError', 'FencedCommandError', 'JobNotFoundError']),
  );
  for (const { mine, other } of classes) expect(mine).not.toBe(other);
});

describe.each(classes)('$name', ({ name, mine, other }) => {
  const subclassOf = (parent: AnyErrorClass): AnyErrorClass => class Special extends parent {};

  it('knows the errors of the other copy', () => {
    expect(instanceOf(other)).toBeInstanceOf(mine);
    expect(instanceOf(mine)).toBeInstanceOf(other);
    expect(instanceOf(mine)).toBeInstanceOf(mine);
    expect(instanceOf(other)).toBeInstanceOf(here.LockError);
    expect(instanceOf(other)).toBeInstanceOf(Error);
  });

  it('knows the errors of its subclasses', () => {
    expect(instanceOf(subclassOf(other))).toBeInstanceOf(mine);
    expect(instanceOf(subclassOf(mine))).toBeInstanceOf(mine);
  });

  it('leaves the subclass of an application its plain meaning', () => {
    const Special = subclassOf(mine);
    for (const errorClass of [mine, other, subclassOf(mine), subclassOf(other)]) {
      expect(instanceOf(errorClass)).not.toBeInstanceOf(Special);
    }
    expect(instanceOf(Special)).toBeInstanceOf(Special);
    expect(instanceOf(subclassOf(Special))).toBeInstanceOf(Special);
  });

  it('recognizes nothing else', () => {
    const parents = (each: AnyErrorClass): unknown[] => {
      const parent = Object.getPrototypeOf(each) as AnyErrorClass | null;
      return parent === null ? [] : [parent, ...parents(parent)];
    };
    const unrelated = classes.filter((each) => each.mine !== mine && !parents(each.other).includes(other));
    const others = [
      ...unrelated.map((each) => instanceOf(each.other)),
      new Error(name),
      { name },
      name,
      null,
      undefined,
    ];
    for (const value of others) expect(value instanceof mine).toBe(false);
  });
});

it('a test of an application can expect an error of the other copy', async () => {
  const busy = new there.LockBusyError('stock', { attempts: 1, retryAfterMs: 900 });
  await expect(Promise.reject(busy)).rejects.toBeInstanceOf(here.LockBusyError);
  await expect(Promise.reject(busy)).rejects.toThrow(here.LockBusyError);
  await rejects(Promise.reject(busy), here.LockBusyError);
});
