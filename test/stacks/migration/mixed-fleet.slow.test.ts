import { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { LEASE_MS, LIBRARIES, type Library, sleep } from './counting.js';
import { Pod } from './fleet.js';

/** What one library's counter came to. */
interface Counted {
  readonly library: Library;
  readonly counter: number;
  /** How often the pods of each release have written it. */
  readonly old: number;
  readonly new: number;
}

describe('processes with another library and ours, on one counter for each library', () => {
  const redis = useRedis();
  let admin: Redis;
  const pods: Pod[] = [];

  beforeEach(async () => {
    admin = new Redis(redis().url);
    await admin.flushall();
  });

  afterEach(() => {
    for (const pod of pods.splice(0)) pod.kill();
    admin.disconnect();
  });

  async function start(old: number, fresh: number, takesBoth: boolean): Promise<{ old: Pod[]; fresh: Pod[] }> {
    const { url } = redis();
    const fleet = {
      old: Array.from({ length: old }, () => new Pod('old', url)),
      fresh: Array.from({ length: fresh }, () => new Pod('new', url, String(takesBoth))),
    };
    pods.push(...fleet.old, ...fleet.fresh);
    await Promise.all(pods.map((pod) => pod.ready()));
    return fleet;
  }

  async function counted(): Promise<Counted[]> {
    const read = async (key: string): Promise<number> => Number(await admin.get(key));
    return Promise.all(
      LIBRARIES.map(async (library) => ({
        library,
        counter: await read(`count:${library}`),
        old: await read(`done:${library}:old`),
        new: await read(`done:${library}:new`),
      })),
    );
  }

  /** Resolves when the pods of both releases have each written every counter so often since now. */
  async function untilAllHaveCounted(times: number): Promise<void> {
    const before = await counted();
    await eventually(async () => {
      const since = (await counted()).map((now, index) => ({
        library: now.library,
        old: now.old - before[index]!.old,
        new: now.new - before[index]!.new,
      }));
      const late = since.filter((each) => each.old < times || each.new < times);
      if (late.length > 0) await sleep(50);
      expect(late).toEqual([]);
    }, 20_000);
  }

  /** Resolves when a pod of each release holds a lock, and is about to send this signal to itself. */
  async function untilStruckBy(signal: 'SIGKILL' | 'SIGSTOP'): Promise<void> {
    await eventually(async () => expect(await admin.mget(`old:${signal}`, `new:${signal}`)).toEqual(['1', '1']));
  }

  /** Counts that were written by both releases together, so often. */
  async function untilCounted(times: number): Promise<readonly Counted[]> {
    return eventually(async () => {
      const counts = await counted();
      const few = counts.filter((each) => each.old + each.new < times);
      if (few.length > 0) await sleep(50);
      expect(few).toEqual([]);
      return counts;
    }, 60_000);
  }

  // One fleet for both: half of the time is that of processes which start.
  it('each release has its share of each lock, and no update is lost, though processes of both die and stand still while they hold it', async () => {
    const { old, fresh } = await start(3, 3, true);
    await untilAllHaveCounted(1);
    // Half of the processes are new, and the old ones ask every 10 ms. One of the new ones asks at a time, so it is one of four: on a
    // busy machine, one of twelve was seen.
    const starved = (await untilCounted(300)).filter((each) => each.new < (each.old + each.new) / 24);
    expect(starved).toEqual([]);
    await untilAllHaveCounted(10);
    old[0]!.tell('kill');
    fresh[0]!.tell('kill');
    await untilStruckBy('SIGKILL');
    await untilAllHaveCounted(10);
    old[1]!.tell('stop');
    fresh[1]!.tell('stop');
    await untilStruckBy('SIGSTOP');
    // Longer than its lock lasts: it must not write when it goes on.
    await sleep(LEASE_MS * 1.5);
    old[1]!.goOn();
    fresh[1]!.goOn();
    await untilAllHaveCounted(10);
    const complaints = await Promise.all(pods.map((pod) => pod.end()));
    expect(complaints.join('')).toBe('');
    for (const { library, counter, old: byOld, new: byNew } of await counted()) {
      expect([library, counter]).toEqual([library, byOld + byNew]);
    }
    // Whatever was held by those that died has expired, and the others have released theirs.
    const left = await Promise.all([1, 2, 3].map(keysIn));
    expect(left).toEqual([[], [], []]);
  }, 120_000);

  it('the same fleet without alsoLock loses updates of every library', async () => {
    await start(2, 2, false);
    await eventually(async () => {
      const exact = (await counted()).filter(({ counter, old, new: byNew }) => old + byNew === counter);
      if (exact.length > 0) await sleep(50);
      expect(exact).toEqual([]);
    }, 20_000);
  });

  async function keysIn(db: number): Promise<string[]> {
    const client = new Redis(redis().url, { db });
    const keys = await client.keys('*');
    client.disconnect();
    return keys;
  }
});
