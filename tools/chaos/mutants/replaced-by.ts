import { readFileSync } from 'node:fs';
import type { Replaced } from '../../../test/support/process/program.js';
import { type Mutant, mutate } from './mutate.mjs';

/** The file of the library that a mutant breaks, as it stands in the mutant. */
export function replacedBy(mutant: Mutant): Replaced {
  const file = new URL(`../../../dist/modules/${mutant.file}`, import.meta.url);
  return { name: mutant.name, file, text: mutate(readFileSync(file, 'utf8'), mutant) };
}
