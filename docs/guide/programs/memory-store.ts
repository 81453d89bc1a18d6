import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const counter = provider<{ value: number; add(by: number): Promise<void> }>('Counter');
  await counter.add(1);
  assert.equal(counter.value, 1);
};
