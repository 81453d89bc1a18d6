import { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { CommandMonitor } from '../../support/redis/command-monitor.js';
import { expectNothingLeft, useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { ScriptLengths } from '../queue/script-lengths.js';

const QUEUE = 'lock:{a}:waiters';

describe('waitUntilFree on Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  it('a release that no process watches runs three commands, and sends the names of three keys', async () => {
    const { locks } = await start();
    await (await locks.acquire('a')).release();
    const lease = await locks.acquire('a');
    const lengths = await ScriptLengths.during(admin(), () => lease.release());
    expect(lengths.commands).toEqual([3]); // GET, EXISTS of the queue, DEL
    const sent: (readonly string[])[] = [];
    await using monitor = await CommandMonitor.start(admin(), (args, source) => {
      if (source !== 'lua' && /^evalsha$/i.test(args[0]!)) sent.push(args);
    });
    await (await locks.acquire('b')).release();
    await monitor.seenAll();
    expect(sent[0]!.slice(2, 6)).toEqual(['3', 'lock:{b}', 'lock:{b}:waiters', 'lock:fence']);
  });

  it('tells a crowd in bounded steps, and leaves no process waiting', async () => {
    const [holder, other] = [await start(), await start()];
    const told = new Set<string>();
    const lease = await holder.locks.acquire('a');
    const watchers = Array.from({ length: 250 }, (_, n) => `${other.store.clientId}/watcher ${n}`);
    const spy = new Redis(redis().url);
    await spy.subscribe(`lock:inbox:${other.store.clientId}`);
    spy.on('message', (_channel, message: string) => void told.add(message));
    await Promise.all(watchers.map((id) => other.store.watch({ resource: 'a', id, mark: 0 }, 60_000)));
    const lengths = await ScriptLengths.during(admin(), async () => {
      await lease.release();
      await eventually(() => expect(told.size).toBe(250));
    });
    expect(lengths.commands).toHaveLength(3);
    expect(lengths.longest).toBeLessThan(120);
    await expectNothingLeft(admin(), holder, other);
    spy.disconnect();
  });

  it('takes no more room than those who watch, however many processes have died there', async () => {
    const [holder, other] = [await start(), await start()];
    await holder.locks.acquire('a');
    for (let n = 0; n < 100; n++) {
      await other.store.watch({ resource: 'a', id: `${other.store.clientId}/dead ${n}`, mark: 0 }, 20);
      if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 30));
    }
    await other.store.watch({ resource: 'a', id: `${other.store.clientId}/alive`, mark: 0 }, 60_000);
    expect(await admin().zcard(QUEUE)).toBeLessThan(25);
  });
});
