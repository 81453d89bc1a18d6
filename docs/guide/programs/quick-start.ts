import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ provider }: SnippetWorld): Promise<void> => {
  const reports = provider<{ build(): Promise<void> }>('Reports');
  await Promise.all([reports.build(), reports.build()]);
};
