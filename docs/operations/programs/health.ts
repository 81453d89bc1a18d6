import assert from 'node:assert/strict';
import { RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Answer {
  readonly details: { readonly locks: { readonly status: string; readonly topology: string } };
}

export default async ({ app, url }: SnippetWorld): Promise<void> => {
  const ask = async (): Promise<unknown[]> => {
    const response = await fetch(`${url}/ready`);
    const { locks } = ((await response.json()) as Answer).details;
    return [response.status, locks.status, locks.topology];
  };
  assert.deepEqual(await ask(), [200, 'up', 'standalone']);

  const locks = app.get(RedisLockService);
  const well = await locks.health();
  locks.health = async () => ({ ...well, status: 'degraded' });
  assert.deepEqual(await ask(), [200, 'up', 'standalone']);
  locks.health = async () => ({ ...well, status: 'down' });
  assert.deepEqual(await ask(), [503, 'down', 'standalone']);

  // Liveness does not ask Redis.
  const live = await fetch(`${url}/live`);
  assert.deepEqual([live.status, await live.text()], [200, 'yes']);
};
