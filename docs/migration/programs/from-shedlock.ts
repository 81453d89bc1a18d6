import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Invoices {
  readonly sentAt: string[];
  send(): Promise<void>;
  importPrices(): Promise<boolean>;
}

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const invoices = provider<Invoices>('Invoices');
  // Another instance whose timer fires for the same tick, and one whose timer fires late.
  await Promise.all([invoices.send(), invoices.send()]);
  await invoices.send();
  assert.ok(invoices.sentAt.length > 0);
  assert.equal(new Set(invoices.sentAt).size, invoices.sentAt.length, 'no tick ran twice');

  // The work is over at once, and the lock is kept for its minute.
  assert.equal(await invoices.importPrices(), true);
  assert.equal(await invoices.importPrices(), false);
};
