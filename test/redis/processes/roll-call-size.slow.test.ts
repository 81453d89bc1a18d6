import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { programOf } from '../../support/process/program.js';
import { useInstances } from '../../support/redis/lock-instances.js';
import { useRedis } from '../../support/redis/redis-server.js';

const PROCESSES = 8;
const IN_EACH = 125;
/** So many that an answer is nearly as long as it may be. */
const LEASES = 40;
const FOREIGN_KEYS = 1_000_000;

const crowd = programOf(new URL('../../support/process/crowd-main.ts', import.meta.url));

describe('a roll call of a thousand instances, beside a million keys of others', () => {
  const redis = useRedis({ args: ['--slowlog-log-slower-than', '1000', '--slowlog-max-len', '1000'] });
  const start = useInstances(() => redis().url);
  const processes: ChildProcess[] = [];
  afterEach(() => processes.splice(0).forEach((child) => child.kill('SIGKILL')));

  it('hears all of them, and holds Redis up for no long moment', async () => {
    const admin = new Redis(redis().url, { disconnectTimeout: 0 });
    try {
      await admin.call('DEBUG', 'POPULATE', String(FOREIGN_KEYS), 'foreign', '32').catch(() => undefined);
      for (let index = 0; index < PROCESSES; index++) {
        const env = { ...process.env, NODE_OPTIONS: '' };
        const child = fork(crowd, [redis().url, `crowd-${index}`, String(IN_EACH), String(LEASES)], {
          execArgv: [],
          env,
        });
        processes.push(child);
        await once(child, 'message');
      }
      const { locks } = await start();
      await locks.fleet({ timeoutMs: 4_000 });
      await admin.slowlog('RESET');
      const times: number[] = [];
      let listed = 0;
      for (let round = 0; round < 5; round++) {
        await new Promise((resolve) => setTimeout(resolve, 1_050));
        const from = performance.now();
        const fleet = await locks.fleet({ timeoutMs: 4_000 });
        times.push(Math.round(performance.now() - from));
        expect(fleet).toMatchObject({ completeness: 'complete', asked: PROCESSES * IN_EACH + 1, silent: [] });
        const held = fleet.instances.map((each) => each.held.length + each.more.held);
        expect(held.reduce((sum, each) => sum + each)).toBe(LEASES * PROCESSES * IN_EACH);
        listed = Math.max(...fleet.instances.map((each) => each.held.length));
        expect(fleet.instances.flatMap((each) => each.waiting)).toHaveLength(PROCESSES * IN_EACH);
      }
      const slow = (await admin.slowlog('GET', 100)) as unknown as [number, number, number, string[]][];
      const told = slow.map(([, , micros, words]) => `${micros} µs: ${words.join(' ').slice(0, 200)}`);
      process.stdout.write(
        `roll calls of ${PROCESSES * IN_EACH + 1}, up to ${listed} leases listed: ${times.join(', ')} ms\n${told.join('\n')}\n`,
      );
      // Much more than it takes: this machine may be busy.
      expect(Math.min(...times)).toBeLessThan(3_000);
      const ours = told.filter((line) => /roll|evalsha/i.test(line) && Number.parseInt(line, 10) > 20_000);
      expect(ours).toEqual([]);
    } finally {
      admin.disconnect();
    }
  }, 180_000);
});
