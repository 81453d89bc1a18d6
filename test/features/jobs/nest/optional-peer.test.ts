import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const LIB = join(dirname(fileURLToPath(import.meta.url)), '../../../../lib');
/** Imports that remain at run time, so none of types. */
const IMPORT = /^(?:import|export) (?!type )(?:[^'";]*? from )?'([^']+)';/gm;

/** All packages that a file needs at run time, with the files that name them. */
function packagesOf(entry: string): Map<string, string[]> {
  const packages = new Map<string, string[]>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, named] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
      if (named!.startsWith('.')) visit(join(dirname(file), named!.replace(/\.js$/, '.ts')));
      else packages.set(named!, [...(packages.get(named!) ?? []), file.slice(LIB.length + 1)]);
    }
  };
  visit(join(LIB, entry));
  return packages;
}

describe('@nestjs/schedule', () => {
  it('is needed by nestjs-redis-lock/schedule only: applications without jobs do not install it', () => {
    expect(packagesOf('index.ts').get('@nestjs/schedule')).toBeUndefined();
    expect(packagesOf('index.ts').get('@nestjs/common')).toBeDefined();
    expect(packagesOf('schedule.ts').get('@nestjs/schedule')).toBeDefined();
  });
});
