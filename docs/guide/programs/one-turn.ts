import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisLockService } from 'nestjs-redis-lock';
import type { SnippetWorld } from '../../../test/docs/snippet-world.js';

const ANSWER = 'Tea is fine.';

export default async ({ app, url }: SnippetWorld): Promise<void> => {
  const locks = app.get(RedisLockService);
  const ask = async (chat: string, how: string) => {
    const response = await fetch(`${url}/chats/${chat}/${how}`, { method: 'POST' });
    return { status: response.status, text: await response.text() };
  };
  const untilHeld = async (chat: string) => {
    while ((await locks.inspect(`chat:${chat}`)).holders.length === 0) await sleep(2);
  };

  const queued = await Promise.all([ask('1', 'queue'), ask('1', 'queue')]);
  for (const answer of queued) assert.deepEqual(answer, { status: 201, text: ANSWER });

  const first = ask('2', 'reject');
  await untilHeld('2');
  const refused = await ask('2', 'reject');
  assert.equal(refused.status, 409);
  const { busySince } = JSON.parse(refused.text) as { busySince: string };
  assert.ok(Math.abs(Date.now() - Date.parse(busySince)) < 60_000);
  assert.equal((await first).text, ANSWER);

  const older = ask('3', 'newest');
  await untilHeld('3');
  const newer = ask('3', 'newest');
  assert.equal((await older).status, 409);
  assert.deepEqual(await newer, { status: 201, text: ANSWER });

  // Longer than a wait that is not reported.
  const lease = await locks.acquire('chat:4');
  const streams = [ask('4', 'stream'), ask('4', 'stream')];
  await sleep(200);
  await lease.release();
  const lines = (await Promise.all(streams)).map(({ text }) =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly youAreNumber?: number }),
  );
  assert.deepEqual(
    lines.map(([place]) => place?.youAreNumber ?? 0).toSorted((a, b) => a - b),
    [1, 2],
  );
  for (const told of lines) assert.deepEqual(told.slice(-3), [{ text: 'Tea' }, { text: ' is' }, { text: ' fine.' }]);
};
