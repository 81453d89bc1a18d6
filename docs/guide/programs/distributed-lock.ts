import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Shop {
  transfer(from: string, to: string): Promise<void>;
  rebuildIndex(): Promise<void>;
}

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const shop = provider<Shop>('Shop');
  await shop.transfer('8', '3');
  assert.equal(await shop.rebuildIndex(), undefined);
};
