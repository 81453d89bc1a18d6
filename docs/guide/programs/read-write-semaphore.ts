import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Catalogue {
  find(id: string): Promise<string>;
  export(): Promise<string>;
}

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const catalogue = provider<Catalogue>('Catalogue');
  assert.deepEqual(await Promise.all([catalogue.find('7'), catalogue.export()]), ['7', 'exported']);
};
