import { eventually } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { useProcesses } from '../../support/process/lock-process.js';
import { conflicts, type MixedSection, type Way } from '../../support/expect/mixed-sections.js';
import { useRedis } from '../../support/redis/redis-server.js';
const ALL = ['a', 'b', 'c'];
/** All of them, and overlapping parts; names with braces are no hash tags: they are all in slots of their own. */
const SETS = [ALL, ALL, ['a', 'b'], ['b', 'c'], ['c', 'a'], ['b', '{a}', '{b}'], ['{a}', 'c']];
/** In three processes, 51. */
const CALLERS = 17;
/** Time for which the processes work, without a pause. */
const FOR_MS = process.env['TEST_SPEED'] === 'long' ? 6_000 : 1_500;

describe('several resources at once', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const startProcess = useProcesses(() => redis().url);
  const expectNothingLeft = () => eventually(async () => expect(await admin().keys('*')).toEqual(['lock:fence']));

  it.each<[string, Way[]]>([
    [
      'to read and to write',
      SETS.flatMap((resources) => [
        { resources, options: { mode: 'read' as const } },
        { resources, options: { mode: 'write' as const } },
      ]),
    ],
  ])(
    'processes that take overlapping sets %s, in any order, never wait for each other for ever',
    async (_how, ways) => {
      const processes = await Promise.all([1, 2, 3].map(() => startProcess()));
      const work = { callers: CALLERS, forMs: FOR_MS, ways };
      // A deadlock would end in a time-out after a minute. A busy machine needs more than one round for so many.
      const sections: MixedSection[] = [];
      for (let seed = 1; sections.length <= 100; seed += processes.length) {
        const shares = await Promise.all(processes.map((each, i) => each.ask('mixed', { ...work, seed: seed + i })));
        expect(shares.map((share) => share.length)).not.toContain(0);
        sections.push(...shares.flat());
      }
      for (const resource of new Set(SETS.flat())) {
        expect(sections.some(({ resources }) => resources.includes(resource))).toBe(true);
        expect(conflicts(sections, resource)).toEqual([]);
      }
      await expectNothingLeft();
    },
  );
});
