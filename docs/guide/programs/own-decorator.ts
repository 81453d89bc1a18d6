import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ url }: SnippetWorld): Promise<void> => {
  const response = await fetch(`${url}/orders/7/pay`, { method: 'POST' });
  assert.deepEqual(await response.json(), { paid: '7' });
  assert.equal(response.headers.get('cache-control'), 'no-store');
};
