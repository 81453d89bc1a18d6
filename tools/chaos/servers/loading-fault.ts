import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { eventually } from '../../../test/support/expect/eventually.js';
import type { RedisServer } from '../../../test/support/redis/redis-server.js';
import { connectAdmin, insist } from '../../../test/support/redis/admin-client.js';

/** Read back slowly, one after another. Enough for twice the time, which is cut short. Not under a lock prefix. */
const FILLER = Array.from({ length: 200 }, (_, i) => `chaos-filler-${i}`);
/** While it reads, Redis looks at its clients every so many bytes, at least 1024: after each filler key. */
const EVENTS_EVERY_BYTES = 1_024;

/** Kills Redis and restarts it with data that take `ms` to load: commands are answered with LOADING. */
export async function restartLoading(server: RedisServer, admin: Redis, ms: number): Promise<void> {
  await insist(() => admin.mset(FILLER.flatMap((key) => [key, randomBytes(EVENTS_EVERY_BYTES)])));
  await rewriteLog(admin);
  await server.kill();
  const delayUs = Math.ceil((2 * ms * 1_000) / FILLER.length);
  const args = ['--loading-process-events-interval-bytes', `${EVENTS_EVERY_BYTES}`, '--key-load-delay', `${delayUs}`];
  await Promise.all([server.restart({ keepData: true, args }), endLoading(server, ms)]);
  await insist(() => admin.unlink(FILLER));
}

/** Makes the filler part of the snapshot: Redis looks at its clients more often while it reads that than in the log. */
async function rewriteLog(admin: Redis): Promise<void> {
  await insist(() => admin.bgrewriteaof());
  await eventually(async () => {
    if (/^aof_rewrite_(in_progress|scheduled):1/m.test(await admin.info('persistence'))) throw new Error('Rewrites');
  });
}

/** Waits until Redis answers, and removes the delay after `ms`. */
async function endLoading(server: RedisServer, ms: number): Promise<void> {
  const client = connectAdmin(server.port, { enableReadyCheck: false });
  try {
    await eventually(() => client.config('SET', 'loading-process-events-interval-bytes', String(EVENTS_EVERY_BYTES)));
    await sleep(ms);
    await insist(() => client.config('SET', 'key-load-delay', '0'));
  } finally {
    client.disconnect();
  }
}
