import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const checkout = provider<{ checkout(id: string): Promise<string> }>('Checkout');
  assert.equal(await checkout.checkout('7'), 'charged 7');
};
