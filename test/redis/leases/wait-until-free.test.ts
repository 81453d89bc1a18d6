import { Redis } from 'ioredis';
import { LockTimeoutError, LockUnavailableError } from '../../../lib/kernel/api/errors.js';
import { FakeClock } from '../../support/world/fake-clock.js';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { track } from '../../support/expect/tracked.js';
import { CommandMonitor } from '../../support/redis/command-monitor.js';
import {
  expectNothingLeft,
  keysWithTtl,
  type LockInstance,
  resetCounts,
  useAdmin,
  useInstances,
} from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { ScriptLengths } from '../queue/script-lengths.js';

const LONG = { waitMs: 60_000 };
const QUEUE = 'lock:{a}:waiters';

describe('waitUntilFree on Redis', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);

  const wait = ({ locks }: LockInstance, options: object = LONG) => locks.watches.waitUntilFree('a', options);
  const untilWatching = (count: number) => eventually(async () => expect(await admin().zcard(QUEUE)).toBe(count));

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

  it('is told by the release, one message for each process, before any of them asks again', async () => {
    const holder = await start();
    // Their clocks stand still, so they ask once: before the release, and never by a heartbeat.
    const others = [await start({ clock: new FakeClock() }), await start({ clock: new FakeClock() })];
    const lease = await holder.locks.acquire('a');
    const waits = others.flatMap((instance) => [1, 2, 3].map(() => wait(instance)));
    await untilWatching(2);
    const ears = admin().duplicate();
    const told: string[] = [];
    ears.on('pmessage', (_pattern: string, channel: string, message: string) => {
      if (!message.startsWith('probe ')) told.push(channel);
    });
    await ears.psubscribe('lock:inbox:*');
    await lease.release();
    await Promise.all(waits);
    await ears.ping(); // answered after all that came before
    ears.disconnect();
    expect(told.sort()).toEqual(others.map(({ store }) => store.keys.inbox(store.clientId)).sort());
    await expectNothingLeft(admin(), holder, ...others);
  });

  it('leaves nothing when it gives up, and never a key without expiry', async () => {
    const [holder, other] = [await start(), await start()];
    const lease = await holder.locks.acquire('a', { leaseMs: 60_000 });
    const waiting = track(wait(other, { waitMs: 1_500 }));
    await untilWatching(1);
    expect((await keysWithTtl(admin()))[QUEUE]).toBeGreaterThan(0);
    await eventually(() => expect(waiting.error).toBeInstanceOf(LockTimeoutError));
    await eventually(async () => expect(await admin().exists(QUEUE)).toBe(0));
    await lease.release();
  });

  it('is not listed as a resource in use, also where the lease has ended unnoticed', async () => {
    const [witness, other] = [await start(), await start()];
    await admin().set('lock:{a}', 'dead/1/x 32 60000', 'PX', 60_000);
    const watcher = { resource: 'a', id: `${other.store.clientId}/watcher`, mark: 0 };
    await other.store.watch(watcher, 60_000);
    await admin().del('lock:{a}'); // as by its expiry
    expect(await admin().keys('lock:{*')).toEqual([QUEUE]);
    expect(await witness.locks.operators.list()).toEqual([]);
    await other.store.watch(watcher, 0);
    expect(await admin().exists(QUEUE)).toBe(0);
  });

  it('is not deceived by what another user of the channels sends, or sends once more', async () => {
    const [holder, other] = [await start(), await start()];
    const inbox = `lock:inbox:${other.store.clientId}`;
    const heard: string[] = [];
    const spy = new Redis(redis().url);
    await spy.subscribe(inbox);
    spy.on('message', (_channel, message: string) => void heard.push(message));

    const first = await holder.locks.acquire('a');
    const early = wait(other);
    await untilWatching(1);
    await first.release();
    await early;
    await eventually(() => expect(heard).toHaveLength(1));
    expect(heard[0]).toMatch(/^free [0-9a-f]{40} 0 a$/);
    expect(heard[0]).not.toContain(other.store.clientId);

    const second = await holder.locks.acquire('a');
    const late = track(wait(other));
    await untilWatching(1);
    await resetCounts(admin());
    const forged = ['', 'free', 'free a', `free ${'0'.repeat(40)} 0 a`, heard[0]!.replace(' 0 a', ' 1 a')];
    for (const message of [...heard, ...forged]) await admin().publish(inbox, message);
    expect(await other.locks.inspect('a')).toMatchObject({ mode: 'exclusive' });
    expect(late.state).toBe('pending');
    await second.release();
    await eventually(() => expect(late.state).toBe('fulfilled'));
    spy.disconnect();
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

  it.each([
    ['of the queue', QUEUE],
    ['of the lock', 'lock:{a}'],
  ])('refuses where a key of another program stands in the place %s, and changes nothing', async (_what, key) => {
    const { locks } = await start();
    for (const isHeld of [false, true]) {
      await admin().flushall();
      if (isHeld && key === QUEUE) await admin().set('lock:{a}', 'dead/1/x 32 60000', 'PX', 60_000);
      await admin().zadd(key, 1, 'mine', 2, '#1', 3, '!x');
      const error = await rejection(locks.watches.waitUntilFree('a', { waitMs: 2_000 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toContain('WRONGTYPE');
      expect(await admin().zrange(key, '0', '-1')).toEqual(['mine', '#1', '!x']);
      expect(await admin().pttl(key)).toBe(-1);
    }
  });

  it('is not resolved by a server that has forgotten its locks', async () => {
    const { locks } = await start({ restartQuarantineMs: 5_000, defaults: { leaseMs: 1_000 } });
    await eventually(() => locks.watches.waitUntilFree('a', { waitMs: 0 }), 30_000);
    await redis().restart();
    const error = await rejection(locks.watches.waitUntilFree('a', { waitMs: 1_000 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('restartQuarantineMs');
  });
});
