import assert from 'node:assert/strict';
import { type LockState, RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ app, url }: SnippetWorld): Promise<void> => {
  const asOperator = (path: string, method = 'GET'): Promise<Response> =>
    fetch(`${url}/admin/locks${path}`, { method, headers: { 'x-admin-key': 'of-the-night' } });
  await app.get(RedisLockService).acquire('order:7');

  const { status } = await fetch(`${url}/admin/locks`);
  assert.equal(status, 403);

  const [state] = (await (await asOperator('?prefix=order:')).json()) as LockState[];
  assert.equal(state?.resource, 'order:7');
  const lease = `/order:7/${state.holders[0]?.fencingToken}`;

  assert.equal((await asOperator(`${lease}x`, 'DELETE')).status, 400);
  assert.deepEqual(await (await asOperator(lease, 'DELETE')).json(), { released: true });
  assert.deepEqual(await (await asOperator('')).json(), []);
};
