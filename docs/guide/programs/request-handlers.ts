import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ url }: SnippetWorld): Promise<void> => {
  for (const path of ['pay', 'invoice']) {
    const { status } = await fetch(`${url}/orders/7/${path}`, { method: 'POST' });
    assert.equal(status, 201);
  }
};
