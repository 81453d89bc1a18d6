import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { repositoryFiles } from '../support/process/repository-files.js';

const DECLARED =
  /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)(?=[\s<{]*[={<]| extends| implements)/gm;

it('no two files of lib/ declare a type by the same name, be it exported or private', () => {
  const places = new Map<string, string[]>();
  for (const file of repositoryFiles('lib/*.ts').filter((name) => !name.endsWith('.generated.ts'))) {
    for (const [, name] of readFileSync(join(root, file), 'utf8').matchAll(DECLARED)) {
      places.set(name!, [...(places.get(name!) ?? []), file]);
    }
  }
  expect(places.size).toBeGreaterThan(800);
  expect([...places].filter(([, files]) => files.length > 1)).toEqual([]);
});
