import { eventually } from '../../support/expect/eventually.js';
import { useAdmin, useInstances } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { conflicts, type MixedSection, mostAtOnce, type Way, workMixed } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

const LOCKS: Way[] = [
  { resources: 'book', options: { mode: 'read' } },
  { resources: 'book', options: { mode: 'read' } },
  { resources: 'book', options: { mode: 'read', strictOrder: true } },
  { resources: 'book', options: { mode: 'write' } },
  { resources: 'book', options: { mode: 'write', strictOrder: true } },
  { resources: 'book' },
  { resources: 'book', options: { mode: 'reentrant' } },
];
const PERMITS: Way[] = [1, 2, 3].map((count) => ({ resources: 'seats', options: { permits: 4, count } }));
const EVERYTHING = [...LOCKS, ...PERMITS];
/** How long the processes work, without a pause. */
const FOR_MS = process.env['TEST_SPEED'] === 'long' ? 6_000 : 2_000;

describe('four instances with eight callers each', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const startProcess = useProcesses(() => redis().url);

  const expectSound = async (sections: MixedSection[]): Promise<void> => {
    expect(conflicts(sections, 'book')).toEqual([]);
    expect(conflicts(sections, 'seats', 4)).toEqual([]);
    await eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));
  };

  it('that lock in every mode and take permits: nobody is where he excludes another, and nothing is left', async () => {
    const instances = await Promise.all([1, 2, 3, 4].map(() => start()));
    const work = { callers: 8, times: 25, ways: EVERYTHING };
    const shares = await Promise.all(instances.map(({ locks }, i) => workMixed(locks, { ...work, seed: i + 1 })));
    const sections = shares.flat();
    expect(sections).toHaveLength(4 * 8 * 25);
    await expectSound(sections);
    // What may be shared is shared.
    expect(mostAtOnce(sections, 'book', 'read')).toBeGreaterThanOrEqual(2);
    expect(mostAtOnce(sections, 'seats', 'semaphore')).toBeGreaterThanOrEqual(2);
  });

  it('in processes of their own, while scripts are forgotten and connections are killed all the time: the same', async () => {
    const processes = await Promise.all([1, 2, 3, 4].map(() => startProcess()));
    const work = { callers: 8, forMs: FOR_MS, ways: EVERYTHING };
    const results = Promise.all(processes.map((each, i) => each.ask('mixed', { ...work, seed: i + 1 })));
    let isDone = false;
    let faults = 0;
    const storm = (async () => {
      const random = new SeededRandom();
      for (; !isDone; faults++) {
        await admin().script('FLUSH');
        const list = (await admin().client('LIST')) as string;
        const ids = [...list.matchAll(/^id=(\d+) .* name=nestjs-redis-lock:process-/gm)].map(([, id]) => id!);
        const victim = ids[Math.floor(random.fraction() * ids.length)];
        if (victim)
          await admin()
            .client('KILL', 'ID', victim)
            .catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    const shares = await results;
    isDone = true;
    await storm;
    for (const share of shares) expect(share.length).toBeGreaterThan(8);
    expect(faults).toBeGreaterThan(5);
    await expectSound(shares.flat());
  });
});
