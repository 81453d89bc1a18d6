import assert from 'node:assert/strict';
import { RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

interface Mailer {
  send(): Promise<void>;
  pending(): Promise<number | undefined>;
}

export default async ({ app, provider }: SnippetWorld): Promise<void> => {
  await app.get(RedisLockService).leadership('mailer')!.whenElected();
  const mailer = provider<Mailer>('Mailer');
  await mailer.send();
  assert.equal(await mailer.pending(), 0);
};
