import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

const FOR_MS = 3_000;

describe('four processes with eight callers each', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  /** What goes wrong every 100 ms. */
  const faults = async (random: SeededRandom): Promise<void> => {
    await admin().script('FLUSH');
    const list = (await admin().client('LIST')) as string;
    const ids = [...list.matchAll(/^id=(\d+) .* name=nestjs-redis-lock:process-/gm)].map(([, id]) => id!);
    await admin().client('KILL', 'ID', ids[Math.floor(random.fraction() * ids.length)]!);
  };

  it('lose no update while scripts are forgotten and connections are killed all the time', async () => {
    const file = join(redis().folder, 'counter');
    await writeFile(file, '0');
    const { locks } = await start();
    const lease = await locks.acquire('x', { leaseMs: 60_000 });
    const processes = await Promise.all([1, 2, 3, 4].map(() => startProcess()));
    const work = { callers: 8, forMs: FOR_MS };
    const results = Promise.all(processes.map((each) => each.ask('countInFile', 'x', file, work)));
    await eventually(async () => expect((await locks.inspect('x')).waiters).toHaveLength(4));
    await lease.release();

    let isDone = false;
    let faulty = 0;
    const storm = (async () => {
      const random = new SeededRandom();
      for (; !isDone; faulty++) {
        await faults(random).catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    const shares = await results;
    isDone = true;
    await storm;

    const sections = shares.flat().sort((a, b) => a.fencingToken - b.fencingToken);
    const total = sections.length;
    // In the order of their tokens, each found what the one before it had left, and began when that was over.
    expect(sections.findIndex(({ value }, i) => value !== i)).toBe(-1);
    expect(sections.findIndex(({ from }, i) => i > 0 && from < sections[i - 1]!.to)).toBe(-1);
    expect(new Set(sections.map(({ fencingToken }) => fencingToken)).size).toBe(total);
    expect(await readFile(file, 'utf8')).toBe(String(total));
    expect(total).toBeGreaterThan(4 * 8);
    // While all of them want it: the time of each process begins with its first lease.
    const from = Math.max(...shares.map((share) => share[0]!.from));
    const to = Math.min(...shares.map((share) => share.at(-1)!.to));
    const together = shares.map((share) => share.filter((section) => section.from >= from && section.to <= to).length);
    // One whose connections are killed has to queue again, while the others go on.
    for (const count of together) expect(count).toBeGreaterThan(0);
    expect(faulty).toBeGreaterThan(5);
    await eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));
  });
});
