import assert from 'node:assert/strict';
import { RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

/** One tenant while its import runs, and another one meanwhile. */
export default async ({ app, url }: SnippetWorld): Promise<void> => {
  const start = async (tenant: string): Promise<{ started: boolean; runsAt?: string }> =>
    (await fetch(`${url}/tenants/${tenant}/imports`, { method: 'POST' })).json() as never;
  await app.get(RedisLockService).using('import:ann', async () => {
    const busy = await start('ann');
    assert.equal(busy.started, false);
    assert.match(busy.runsAt!, /:\d+:/);
    assert.deepEqual(await start('bob'), { started: true });
  });
  assert.deepEqual(await start('ann'), { started: true });
};
