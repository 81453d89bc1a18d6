import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const invoices = provider<{ send(id: string): Promise<string> }>('Invoices');
  assert.equal(await invoices.send('i-1'), 'lock of "billing"');
};
