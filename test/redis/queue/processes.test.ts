import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { useAdmin, useInstances, untilQueued } from '../../support/redis/lock-instances.js';
import { type LockProcess, useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';

/** A heartbeat is due after 1 to 1.25 s; the rest is for a busy machine. Who survives has a lease of a minute. */
const HEARTBEAT_MS = 1_250 + 3_000;
const LONG_MS = 60_000;

describe('processes that wait for each other', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  const untilTheyWait = async (...waiters: LockProcess[]): Promise<void> => {
    const watch = await start();
    await untilQueued(watch, 'x', ...waiters);
    await watch.locks.shutdown(0);
  };
  const untilHeldBy = (process: LockProcess) =>
    eventually(async () => expect((await admin().get('lock:{x}'))?.split('/')[0]).toBe(process.instanceId));
  /** A holder, and two who wait behind it. */
  const scene = async (leases: { holder: number; first: number }) => {
    const [holder, first, second] = await Promise.all([
      startProcess(leases.holder),
      startProcess(leases.first),
      startProcess(LONG_MS),
    ]);
    await holder.ask('acquire', 'x');
    const grant = first.ask('acquire', 'x', { waitMs: 60_000 });
    grant.catch(() => {});
    await untilTheyWait(first);
    const next = second.ask('acquire', 'x', { waitMs: 60_000 });
    await untilTheyWait(first, second);
    return { holder, first, second, grant, next };
  };
  const expectNothingLeft = (...live: LockProcess[]) =>
    eventually(async () => {
      expect(await admin().keys('*')).toEqual(['lock:fence']);
      const inboxes = live.map(({ instanceId }) => `lock:inbox:${instanceId}`);
      const channels = (await admin().pubsub('CHANNELS', 'lock:inbox:*')) as string[];
      expect(channels.map((channel) => channel.slice(0, channel.lastIndexOf('/'))).sort()).toEqual(inboxes.sort());
    });

  it('the holder is killed: the first one has the lock when the lease and a heartbeat are over, the second after it', async () => {
    const { holder, first, second, grant, next } = await scene({ holder: 1_000, first: LONG_MS });
    const from = performance.now();
    await holder.kill();
    const lease = await grant;
    expect(performance.now() - from).toBeLessThan(1_000 + HEARTBEAT_MS);
    expect(lease.isHeld).toBe(true);
    await first.ask('release', 'x');
    expect((await next).fencingToken).toBeGreaterThan(lease.fencingToken);
    await second.ask('release', 'x');
    await expectNothingLeft(first, second);
  });

  it('one that waits is killed: it is passed over at once', async () => {
    const { holder, first, second, grant, next } = await scene({ holder: LONG_MS, first: LONG_MS });
    await first.kill();
    await rejection(grant);
    await eventually(async () => expect(await admin().pubsub('CHANNELS', 'lock:inbox:*')).toHaveLength(2));
    const from = performance.now();
    await holder.ask('release', 'x');
    expect((await next).isHeld).toBe(true);
    expect(performance.now() - from).toBeLessThan(LONG_MS / 3);
    await second.ask('release', 'x');
    await expectNothingLeft(holder, second);
  });

  it('one is killed the moment it is granted: the next has the lock when that lease and a heartbeat are over', async () => {
    const { holder, first, second, grant, next } = await scene({ holder: LONG_MS, first: 1_500 });
    first.suspend(); // it never learns of it
    await holder.ask('release', 'x');
    await untilHeldBy(first);
    const from = performance.now();
    await first.kill();
    await rejection(grant);
    expect((await next).isHeld).toBe(true);
    expect(performance.now() - from).toBeLessThan(1_500 + HEARTBEAT_MS);
    await second.ask('release', 'x');
    await expectNothingLeft(holder, second);
  });

  it('in strict turns, none is ever a turn ahead of another', async () => {
    const file = join(redis().folder, 'turns');
    await writeFile(file, '0');
    const { locks } = await start();
    const lease = await locks.acquire('x', { leaseMs: LONG_MS });
    const processes = await Promise.all([startProcess(), startProcess(), startProcess()]);
    const work = { callers: 4, times: 12, options: { strictOrder: true } };
    const results = processes.map((each) => each.ask('countInFile', 'x', file, work));
    await eventually(async () => expect((await locks.inspect('x')).waiters).toHaveLength(3));
    await lease.release();
    const sections = (await Promise.all(results)).flatMap((own, place) => own.map((each) => ({ ...each, place })));
    sections.sort((a, b) => a.fencingToken - b.fencingToken);
    expect(sections.map(({ value }) => value)).toEqual(Array.from({ length: 3 * 4 * 12 }, (_, i) => i));
    const counts = [0, 0, 0];
    let furthest = 0;
    for (const { place } of sections) {
      counts[place]!++;
      furthest = Math.max(furthest, Math.max(...counts) - Math.min(...counts));
    }
    expect(furthest).toBe(1);
  });
});
