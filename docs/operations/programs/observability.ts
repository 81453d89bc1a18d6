import assert from 'node:assert/strict';
import { RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

export default async ({ app, url }: SnippetWorld): Promise<void> => {
  const lease = await app.get(RedisLockService).acquire('order:7');
  const text = async (): Promise<string> => (await fetch(`${url}/metrics`)).text();
  assert.match(await text(), /^nestjs_redis_lock_held\{[^}]*lock_group="order"[^}]*\} 1$/m);
  await lease.release();
  assert.match(await text(), /^nestjs_redis_lock_held\{[^}]*lock_group="order"[^}]*\} 0$/m);
  assert.match(await text(), /^nestjs_redis_lock_hold_time_count\{[^}]*lock_group="order"[^}]*\} 1$/m);
};
