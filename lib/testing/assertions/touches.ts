import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { describeValue } from '../../core/api/validation.js';
import { isObject } from '../../core/util/objects.js';

/** Stands around each call of a method. @param name `Class.method`, for messages */
export type Around = (name: string, call: () => unknown) => unknown;

/** Dependencies of the code under test, such as a repository. */
export type Touched = object | readonly object[];

/**
 * Stands around each method call of some objects, until the returned function is called.
 *
 * @throws InvalidLockOptionsError when one of them is no object with methods
 */
export function aroundCalls(where: string, touched: Touched, around: Around): () => void {
  const objects = [touched].flat() as object[];
  const methods = objects.flatMap((object) => methodsOf(object, where).map((name) => ({ object, name })));
  const undo = methods.map(({ object, name }) => replace(object as Record<string, unknown>, name, around));
  return () => undo.forEach((each) => each());
}

function methodsOf(object: unknown, where: string): string[] {
  const names = new Set<string>();
  for (let each = object; isObject(each) && each !== Object.prototype; each = Object.getPrototypeOf(each) as unknown) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each))) {
      if (typeof value === 'function' && name !== 'constructor') names.add(name);
    }
  }
  if (names.size > 0 && Object.isExtensible(object)) return [...names];
  throw new InvalidLockOptionsError(
    `touching of ${where} must be an object with methods, such as a repository, or an array of them, ` +
      `not ${describeValue(object)}.`,
    'touching',
  );
}

function replace(object: Record<string, unknown>, name: string, around: Around): () => void {
  const original = object[name] as (...args: unknown[]) => unknown;
  const own = Object.getOwnPropertyDescriptor(object, name);
  const label = `${object.constructor?.name ?? 'object'}.${name}`;
  const value = function (this: unknown, ...args: unknown[]): unknown {
    return around(label, () => original.apply(this, args));
  };
  Object.defineProperty(object, name, {
    value,
    configurable: true,
    writable: true,
    enumerable: own?.enumerable ?? false,
  });
  return () => {
    if (own) Object.defineProperty(object, name, own);
    else delete object[name];
  };
}
