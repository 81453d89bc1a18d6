import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Prices {
  quote(region: string): Promise<number | undefined>;
  change(region: string, price: number): Promise<void>;
}

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const prices = provider<Prices>('Prices');
  await prices.change('eu', 3);
  assert.deepEqual(await Promise.all([prices.quote('eu'), prices.quote('eu')]), [3, 3]);
};
