import type { Type } from '@nestjs/common';
import { sharedByCopies } from '../core/util/objects.js';

/**
 * The classes that Nest injects, of each copy of this package that the process has loaded, with their names. Nest
 * injects by class, and a CommonJS library in an ES module application has classes of its own.
 */
const names = sharedByCopies('injected-classes:1', () => new Map<Type, string>());

/** @param classes by their names, which are the same in every copy: a minifier may rename the class itself */
export function addInjected(classes: Readonly<Record<string, unknown>>): void {
  for (const [name, each] of Object.entries(classes)) names.set(each as Type, name);
}

/** Returns this class as it is in the other copies that are loaded now. */
export function inOtherCopies(own: unknown): Type[] {
  const ownName = names.get(own as Type);
  return [...names].flatMap(([each, name]) => (name === ownName && each !== own ? [each] : []));
}
