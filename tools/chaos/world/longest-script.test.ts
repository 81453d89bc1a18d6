import { Redis } from 'ioredis';
import { PROBE_INBOX, VERIFY } from '../../../lib/redis/script/scripts.js';
import { useRedis } from '../../../test/support/redis/redis-server.js';
import { LongestScript } from './longest-script.js';
import { processorWaits, waitedBetween } from './processor-waits.js';

/** For so long, in microseconds of Redis. */
const SPIN = `
local function now() local clock = redis.call('TIME') return clock[1] * 1000000 + clock[2] end
local from = now()
repeat until now() - from > tonumber(ARGV[1])`;

describe('the longest script of a Redis', () => {
  const redis = useRedis();
  const clients: Redis[] = [];
  const connect = (connectionName?: string): Redis => {
    const client = new Redis(redis().url, { ...(connectionName && { connectionName }) });
    clients.push(client);
    return client;
  };
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });

  it('is one of the library, since the last look, with its name', async () => {
    const [admin, other, library] = [connect(), connect('other'), connect('nestjs-redis-lock')];
    const scripts = new LongestScript(admin);
    await scripts.take();
    expect(await scripts.take()).toBeUndefined();
    await other.eval(SPIN, 1, 'lock:{other}', 20_000);
    await library.eval(SPIN, 1, 'lock:{stock}', 5_000);
    const longest = (await scripts.take())!;
    expect(longest).toMatchObject({ script: 'a script that is not in lua/', key: 'lock:{stock}' });
    expect(longest.ms).toBeGreaterThan(5);
    expect(longest.atWorkMs).toBeLessThanOrEqual(longest.ms);
    expect(await scripts.take()).toBeUndefined();
  });

  it.each([
    ['probeInbox', PROBE_INBOX, ['channel', 'probe']],
    ['verify', VERIFY, ['a/1', 'exclusive']],
  ])('is known by its text and by its hash: %s', async (name, { lua, sha }, args) => {
    const [admin, library] = [connect(), connect('nestjs-redis-lock')];
    const scripts = new LongestScript(admin);
    for (const send of [() => library.eval(lua, 1, 'key', ...args), () => library.evalsha(sha, 1, 'key', ...args)]) {
      await scripts.take();
      await admin.config('SET', 'slowlog-log-slower-than', 0);
      await send().catch(() => undefined);
      expect(await scripts.take()).toMatchObject({ script: name, key: 'key' });
    }
  });

  it('has worked for less by as much as Redis may have waited for a processor', () => {
    const waits = (pid: number, queuedMs: number, stolenMs: number) => ({ pid, queuedMs, stolenMs });
    expect(waitedBetween(waits(7, 100, 10), waits(7, 130, 20))).toBe(40);
    // Another process: all that it has waited.
    expect(waitedBetween(waits(7, 100, 10), waits(8, 3, 10))).toBe(3);
    // One that has ended since.
    expect(waitedBetween(waits(7, 100, 10), waits(7, 0, 10))).toBe(0);
    // Nothing is known of what is no server, or is not there.
    for (const pid of [process.pid, 0]) expect(processorWaits(pid)).toMatchObject({ pid, queuedMs: 0 });
  });
});
