import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

/** The same event twice at once, and once more later. */
export default async ({ url, provider }: SnippetWorld): Promise<void> => {
  const send = async (): Promise<boolean> => {
    const response = await fetch(`${url}/webhooks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'evt_1' }),
    });
    assert.equal(response.status, 201);
    return ((await response.json()) as { again: boolean }).again;
  };
  const first = await Promise.all([send(), send()]);
  assert.deepEqual(first.toSorted(), [false, true]);
  assert.equal(await send(), true);
  assert.deepEqual(provider<{ booked: string[] }>('Webhooks').booked, ['evt_1']);
};
