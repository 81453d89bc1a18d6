import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Exports {
  run(tenant: string): Promise<string>;
  archive(): Promise<number | undefined>;
}

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const exports = provider<Exports>('Exports');
  assert.deepEqual(await Promise.all([exports.run('a'), exports.run('b'), exports.archive()]), ['a', 'b', 1]);
};
