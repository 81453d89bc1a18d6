import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { repositoryFiles } from '../support/process/repository-files.js';

const EXPORTED = /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm;

it('no two files of lib/ export a type by the same name', () => {
  const places = new Map<string, string[]>();
  for (const file of repositoryFiles('lib/*.ts')) {
    for (const [, name] of readFileSync(join(root, file), 'utf8').matchAll(EXPORTED)) {
      places.set(name!, [...(places.get(name!) ?? []), file]);
    }
  }
  expect(places.size).toBeGreaterThan(100);
  expect([...places].filter(([, files]) => files.length > 1)).toEqual([]);
});
