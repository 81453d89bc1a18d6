import assert from 'node:assert/strict';
import { RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ app }: SnippetWorld): Promise<void> => {
  const locks = app.get(RedisLockService);
  assert.equal(await locks.using('order:7', () => 17), 17);
};
