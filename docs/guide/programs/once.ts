import assert from 'node:assert/strict';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Reports {
  queries: number;
  report(id: string): Promise<{ id: string; builtAt: string }>;
}

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const reports = provider<Reports>('Reports');
  const [first, second] = await Promise.all([reports.report('7'), reports.report('7')]);
  assert.deepEqual(second, first);
  assert.deepEqual(await reports.report('7'), first);
  assert.equal(reports.queries, 1);
};
