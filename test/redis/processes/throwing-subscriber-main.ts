// What throwing-subscriber.test.ts starts: a lock, and subscribers that throw.
import { tracingChannel } from 'node:diagnostics_channel';
import { LockClient } from '../../../lib/core/lock-client.js';
import { MemoryLockStore } from '../../../lib/memory/memory-lock-store.js';
import { MemoryServer } from '../../../lib/memory/memory-server.js';

let uncaught = 0;
if (process.argv[2] === 'goes on') process.on('uncaughtException', () => uncaught++);

const fail = (): never => {
  throw new Error('a broken subscriber');
};
for (const name of ['acquire', 'hold', 'release']) {
  const channel = tracingChannel(`nestjs-redis-lock:${name}`);
  channel.subscribe({ start: fail, end: fail, asyncStart: fail, asyncEnd: fail, error: fail });
}

const server = new MemoryServer();
const locks = new LockClient({ store: new MemoryLockStore({ instanceId: 'a', server }) });
const first = locks.using('order:7', undefined, async () => 'first');
const second = locks.using('order:7', undefined, async () => 'second');
const results = await Promise.all([first, second]);
await new Promise((resolve) => setImmediate(resolve));
const { mode } = await locks.inspect('order:7');
console.log(JSON.stringify({ results, mode, uncaught }));
await locks.shutdown(0);
