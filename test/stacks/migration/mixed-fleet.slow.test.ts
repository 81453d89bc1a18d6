import { Redis } from 'ioredis';
import { eventually } from '../../support/expect/eventually.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { IDS, LEASE_MS, LIBRARIES, type Library, sleep, type Way, WAYS } from './counting.js';
import { Pod } from './fleet.js';

/** The number of writes to the counters of one library. */
const OPERATIONS = ['all', 'long'].includes(process.env['TEST_SPEED'] ?? '') ? 4_000 : 400;

/** The number of writes by the processes of each release. */
interface Written {
  readonly way: Way;
  readonly old: number;
  readonly new: number;
}

describe('two old processes with another library and two new ones, which take its lock inside of ours', () => {
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

  async function start(kind: 'old' | 'new', library: Library, ...args: readonly string[]): Promise<Pod> {
    const pod = new Pod(kind, library, redis().url, ...args);
    pods.push(pod);
    await pod.ready();
    return pod;
  }

  const read = async (key: string): Promise<number> => Number(await admin.get(key));

  const written = (): Promise<Written[]> =>
    Promise.all(
      WAYS.map(async (way) => ({ way, old: await read(`done:${way}:old`), new: await read(`done:${way}:new`) })),
    );

  /** Updates that a process has done, and another one has overwritten. */
  async function lostOf({ way, ...done }: Written): Promise<number> {
    const ids = way === 'job' ? ['outbox'] : IDS;
    const counters = await Promise.all(ids.map((id) => read(`count:${way}:${id}`)));
    return done.old + done.new - counters.reduce((sum, counter) => sum + counter, 0);
  }

  /** Resolves when both releases have written the counters of each way so often since now. */
  async function untilAllHaveWritten(times: number): Promise<void> {
    const before = await written();
    await eventually(async () => {
      const late = (await written()).filter(
        (now, index) => now.old < before[index]!.old + times || now.new < before[index]!.new + times,
      );
      if (late.length > 0) await sleep(50);
      expect(late).toEqual([]);
    }, 60_000);
  }

  async function untilStruckBy(signal: 'SIGKILL' | 'SIGSTOP', way: Way): Promise<void> {
    await eventually(async () => {
      const struck = await admin.mget(`old:${signal}:${way}`, `new:${signal}:${way}`);
      if (struck.includes(null)) await sleep(50);
      expect(struck).toEqual(['1', '1']);
    }, 60_000);
  }

  it.each(LIBRARIES)(
    '%s: no update is lost, though processes die and stand still while they hold it',
    async (library) => {
      const [old, fresh] = await Promise.all(
        (['old', 'new'] as const).map((kind) => Promise.all([start(kind, library), start(kind, library)])),
      );
      await untilAllHaveWritten(1);
      for (const way of WAYS) {
        const struck = [old!.shift()!, fresh!.shift()!];
        for (const pod of struck) pod.tell({ signal: 'SIGKILL', way });
        await untilStruckBy('SIGKILL', way);
        old!.push(await start('old', library));
        fresh!.push(await start('new', library));
      }
      for (const pod of [old![0]!, fresh![0]!]) pod.tell({ signal: 'SIGSTOP', way: 'using' });
      await untilStruckBy('SIGSTOP', 'using');
      // Longer than its lock lasts: it must not write afterwards.
      await sleep(LEASE_MS * 1.5);
      for (const pod of [old![0]!, fresh![0]!]) pod.goOn();
      await untilAllHaveWritten(10);
      await eventually(async () => {
        const total = (await written()).reduce((sum, each) => sum + each.old + each.new, 0);
        if (total < OPERATIONS) await sleep(50);
        expect(total).toBeGreaterThanOrEqual(OPERATIONS);
      }, 120_000);
      const said = (await Promise.all(pods.map((pod) => pod.end()))).join('').split('\n');
      // The timers of cron complain on a busy machine.
      expect(said.filter((line) => line !== '' && !line.startsWith('[Cron] Missed'))).toEqual([]);
      const counted = await written();
      const lost = await Promise.all(counted.map(lostOf));
      expect({ lost, counted }).toEqual({ lost: [0, 0, 0], counted });
    },
    240_000,
  );

  it.each(LIBRARIES)('%s: a fleet that does not take both loses updates', async (library) => {
    await Promise.all([start('old', library), start('new', library, 'alone')]);
    await eventually(async () => {
      const exact = (await Promise.all((await written()).map(lostOf))).slice(0, 2).filter((lost) => lost === 0);
      if (exact.length > 0) await sleep(50);
      expect(exact).toEqual([]);
    }, 30_000);
  });
});
