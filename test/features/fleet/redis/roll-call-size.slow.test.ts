import { spawnSync } from 'node:child_process';
import { Redis } from 'ioredis';
import { useCrowds } from '../../../support/process/crowd.js';
import { useInstances } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';

/** A thousand instances take long to start. What is asserted of each answer shows with fewer of them. */
const [PROCESSES, IN_EACH] = process.env['TEST_SPEED'] === 'long' ? [8, 125] : [4, 75];
const INSTANCES = PROCESSES * IN_EACH;
/** So many that an answer is nearly as long as it may be. */
const LEASES = 40;
const FOREIGN_KEYS = 1_000_000;
const ROUNDS = 3;

describe(`a roll call of ${INSTANCES} instances, beside a million keys of others`, () => {
  const redis = useRedis({ args: ['--slowlog-log-slower-than', '1000', '--slowlog-max-len', '1000'] });
  const start = useInstances(() => redis().url);
  const startCrowd = useCrowds(() => redis().url);

  it('hears all of them, and holds Redis up for no long moment', async () => {
    const admin = new Redis(redis().url, { disconnectTimeout: 0 });
    try {
      await admin.call('DEBUG', 'POPULATE', String(FOREIGN_KEYS), 'foreign', '32').catch(() => undefined);
      await startCrowd({ processes: PROCESSES, inEach: IN_EACH, leases: LEASES });
      const { locks } = await start();
      await locks.fleet({ timeoutMs: 4_000 });
      // With the first turn at the processor, where this user may give it, the log of slow commands shows Redis's own
      // work only. Otherwise it also shows how long other processes kept Redis waiting.
      const first = spawnSync('chrt', ['--fifo', '--pid', '50', String(redis().pid)]).status === 0;
      await admin.slowlog('RESET');
      await admin.config('RESETSTAT');
      const workedBefore = await secondsOfWork(admin);
      const times: number[] = [];
      let listed = 0;
      for (let round = 0; round < ROUNDS; round++) {
        await new Promise((resolve) => setTimeout(resolve, 1_050));
        const from = performance.now();
        const fleet = await locks.fleet({ timeoutMs: 4_000 });
        times.push(Math.round(performance.now() - from));
        expect(fleet).toMatchObject({ completeness: 'complete', asked: INSTANCES + 1, silent: [] });
        const held = fleet.instances.map((each) => each.held.length + each.more.held);
        expect(held.reduce((sum, each) => sum + each)).toBe(LEASES * INSTANCES);
        listed = Math.max(...fleet.instances.map((each) => each.held.length));
        expect(fleet.instances.flatMap((each) => each.waiting)).toHaveLength(INSTANCES);
      }
      const worked = (await secondsOfWork(admin)) - workedBefore;
      const slow = (await admin.slowlog('GET', 100)) as unknown as [number, number, number, string[]][];
      const told = slow.map(([, , micros, words]) => `${micros} µs: ${words.join(' ').slice(0, 80)}`);
      const answers = ROUNDS * (INSTANCES + 1);
      process.stdout.write(
        [
          `roll calls of ${INSTANCES + 1}, up to ${listed} leases listed: ${times.join(', ')} ms`,
          `${Math.round((worked / answers) * 1e6)} µs of Redis's processor for an answer; over 1 ms${first ? '' : ', waits for the processor included'}:`,
          ...told,
          '',
        ].join('\n'),
      );
      // Much more than it takes: this machine may be busy.
      expect(Math.min(...times)).toBeLessThan(3_000);
      // The processor's time of Redis, which no other process lengthens: a look at the million keys would show.
      expect(worked / answers).toBeLessThan(0.001);
      expect(await commandsSeen(admin)).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(scan|keys)$/)]));
    } finally {
      admin.disconnect();
    }
  }, 180_000);
});

/** Seconds of the processor that Redis has used for commands since it was started. */
async function secondsOfWork(admin: Redis): Promise<number> {
  const info = await admin.info('cpu');
  return ['user', 'sys'].reduce(
    (sum, kind) => sum + Number(new RegExp(`used_cpu_${kind}_main_thread:([\\d.]+)`).exec(info)?.[1]),
    0,
  );
}

/** The names of all commands since the statistics were reset. */
async function commandsSeen(admin: Redis): Promise<string[]> {
  return [...(await admin.info('commandstats')).matchAll(/cmdstat_(\w+):/g)].map(([, name = '']) => name);
}
