import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Imports {
  readonly imported: string[];
  add(tenant: string, expression: string): void;
  remove(tenant: string): void;
  run(tenant: string): Promise<void>;
}

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const imports = provider<Imports>('Imports');
  imports.add('ann', '0 0 1 1 *');
  imports.remove('ann');
  await imports.run('ann');
  await imports.run('ann');
  assert.deepEqual(imports.imported, ['ann']);
};
