import assert from 'node:assert/strict';
import { RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ app, url }: SnippetWorld): Promise<void> => {
  const ask = async (): Promise<unknown[]> => {
    const response = await fetch(`${url}/ready`);
    return [response.status, await response.json()];
  };
  assert.deepEqual(await ask(), [200, { locks: 'up' }]);

  // As when Redis is away.
  const locks = app.get(RedisLockService);
  locks.inspect = () => Promise.reject(new Error('Redis did not answer'));
  assert.deepEqual(await ask(), [503, { locks: 'down' }]);
};
