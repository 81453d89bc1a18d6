import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { eventually } from '../../../../support/expect/eventually.js';
import { connectAdmin } from '../../../../support/redis/admin-client.js';
import { documentedUser } from '../../../../support/redis/lock-user.js';
import { RedisCluster } from '../../../../support/redis/redis-cluster.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { node, SAYS_RAN, shell, untilGuarded, useExec } from './exec-process.js';

const redis = useRedis();
const exec = useExec(() => redis().url);

describe('exec --once', () => {
  it('runs a command that has ended well no more', async () => {
    const first = exec(['deploy', '--once', 'v1', ...SAYS_RAN]);
    await expect(first.ended).resolves.toBe(0);
    expect(first.stdout).toBe('ran\n');
    const second = exec(['deploy', '--once', 'v1', ...SAYS_RAN]);
    await expect(second.ended).resolves.toBe(0);
    expect(second.stdout).toBe('');
    expect(second.stderr).toMatch(/"deploy" already ran \d.* ago with --once "v1"\. /);
    const next = exec(['deploy', '--once', 'v2', ...SAYS_RAN]);
    await next.ended;
    expect(next.stdout).toBe('ran\n');
  });

  it('runs a command that has failed again', async () => {
    await expect(exec(['failing', '--once', 'v1', ...shell('exit 3')]).ended).resolves.toBe(3);
    const second = exec(['failing', '--once', 'v1', ...SAYS_RAN]);
    await expect(second.ended).resolves.toBe(0);
    expect(second.stdout).toBe('ran\n');
  });

  it('does not trust the exit code of a command that was asked to end', async () => {
    const code = `process.on('SIGTERM', () => process.exit(0)); console.log('ready'); setInterval(() => {}, 1000);`;
    const first = exec(['asked', '--once', 'v1', ...node(code)]);
    await first.says('ready');
    first.kill('SIGTERM');
    await expect(first.ended).resolves.toBe(0);
    const second = exec(['asked', '--once', 'v1', ...SAYS_RAN]);
    await second.ended;
    expect(second.stdout).toBe('ran\n');
  });

  it('needs no more rights than the documented user has', async () => {
    const { name, password, rules } = documentedUser();
    const admin = connectAdmin(redis().port);
    await admin.acl('SETUSER', name, ...rules);
    admin.disconnect();
    const env = { REDIS_URL: redis().url.replace('://', `://${name}:${password}@`) };
    const run = exec(['rights', '--once', 'v1', ...SAYS_RAN], env);
    await expect(run.ended).resolves.toBe(0);
    expect(run.stdout).toBe('ran\n');
    expect(run.stderr).toBe('');
    await expect(exec(['rights', '--once', 'v1', ...shell('exit 1')], env).ended).resolves.toBe(0);
  });

  it('works on a cluster, as the module of --config names it', async () => {
    await using cluster = await RedisCluster.start();
    const file = join(mkdtempSync(join(tmpdir(), 'config-')), 'connection.mjs');
    writeFileSync(file, `export default ${JSON.stringify(cluster.connection)};`);
    const once = ['migrate', '--config', file, '--once', 'v1'];
    const run = exec([...once, ...SAYS_RAN]);
    await expect(run.ended).resolves.toBe(0);
    expect(run.stdout).toBe('ran\n');
    await expect(exec([...once, ...shell('exit 1')]).ended).resolves.toBe(0);
    rmSync(dirname(file), { recursive: true });
  });

  it('tells what runs now apart from what has run', async () => {
    const mayEnd = join(mkdtempSync(join(tmpdir(), 'once-')), 'may-end');
    const first = exec(['apart', '--once', 'v1', ...shell(`echo ready; until [ -e ${mayEnd} ]; do sleep 0.05; done`)]);
    await first.says('ready');
    const refused = exec(['apart', '--once', 'v1', '--if-busy', 'fail', ...SAYS_RAN]);
    await expect(refused.ended).resolves.toBe(4);
    const skipped = exec(['apart', '--once', 'v1', '--if-busy', 'skip', ...SAYS_RAN]);
    await expect(skipped.ended).resolves.toBe(0);
    for (const { stderr } of [refused, skipped]) {
      expect(stderr).toContain('"apart" has been held by ');
      expect(stderr).not.toContain('already ran');
    }
    writeFileSync(mayEnd, '');
    await expect(first.ended).resolves.toBe(0);
    const after = exec(['apart', '--once', 'v1', '--if-busy', 'fail', ...SAYS_RAN]);
    await expect(after.ended).resolves.toBe(0);
    expect(after.stderr).toMatch(
      /"apart" already ran \d+(\.\d)? (ms|s) ago with --once "v1"\. The command was not run again\./,
    );
    expect([refused, skipped, after].map(({ stdout }) => stdout)).toEqual(['', '', '']);
    rmSync(dirname(mayEnd), { recursive: true });
  });

  it('leaves no marker if another owner may have the lock by the time the command has ended', async () => {
    const losing = node(`
      const redis = require('net').connect(${redis().port}, '127.0.0.1');
      redis.write('DEL lock:{taken}\\r\\n');
      redis.on('data', () => process.exit(0));`);
    const first = exec(['taken', '--once', 'v1', ...losing]);
    await expect(first.ended).resolves.toBe(6);
    expect(first.stderr).toContain('The lease of "taken" was lost while the command ended');
    const second = exec(['taken', '--once', 'v1', ...SAYS_RAN]);
    await expect(second.ended).resolves.toBe(0);
    expect(second.stdout).toBe('ran\n');
  });

  it('keeps one key beside the lock, for a week or as long as --keep', async () => {
    const admin = connectAdmin(redis().port);
    await exec(['week', '--once', 'v{1}', ...shell(':')]).ended;
    await exec(['hour', '--once', 'v1', '--keep', '1h', ...shell(':')]).ended;
    const daysLeft = (await admin.pttl('lock:{week}:done:v%7B1%7D')) / 86_400_000;
    const hoursLeft = (await admin.pttl('lock:{hour}:done:v1')) / 3_600_000;
    admin.disconnect();
    expect([daysLeft, hoursLeft]).toEqual([expect.closeTo(7, 1), expect.closeTo(1, 1)]);
    for (const keep of ['0.5s', '31d']) {
      const refused = exec(['week', '--once', 'v2', '--keep', keep, ...SAYS_RAN]);
      await expect(refused.ended).resolves.toBe(2);
      expect(refused.stderr).toContain('--keep must be 1s to 30d.');
    }
  });

  it('remembers for as long as --keep', async () => {
    await exec(['kept', '--once', 'v1', '--keep', '1s', ...shell(':')]).ended;
    await eventually(async () => {
      const later = exec(['kept', '--once', 'v1', ...SAYS_RAN]);
      await later.ended;
      expect(later.stdout).toBe('ran\n');
    });
  });
});

const [DEPLOYS, KILLS] = process.env['TEST_SPEED'] === 'long' ? [20, 4] : [6, 2];

describe(`a race of ${DEPLOYS} deploys`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'migration-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Finds a port that only one process can have at a time: Linux frees it the moment that its process is dead. */
  async function freePort(): Promise<number> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    return port;
  }

  /** A migration that writes down when it starts and ends, and what it sees of another one. It ends when it may. */
  function migration(log: string, port: number, mayEnd: string): string[] {
    return node(`
      const { appendFileSync, existsSync } = require('fs');
      const say = (what) => appendFileSync(${JSON.stringify(log)}, what + ' ' + process.env.DEPLOY + '\\n');
      require('net').createServer()
        .on('error', (error) => { say('overlaps'); throw error; })
        .listen(${port}, '127.0.0.1', () => {
          say('begins');
          setInterval(() => {
            if (!existsSync(${JSON.stringify(mayEnd)})) return;
            say('ends');
            process.exit();
          }, 100);
        });`);
  }

  const linesOf = (log: string, word: string): string[] =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(word));

  it('runs the migration once', async () => {
    const log = join(folder, 'peaceful');
    writeFileSync(log, '');
    const command = migration(log, await freePort(), log);
    const deploys = Array.from({ length: DEPLOYS }, (_, index) =>
      exec(['migrate', '--once', 'v1', ...command], { DEPLOY: String(index) }),
    );
    expect(await Promise.all(deploys.map((each) => each.ended))).toEqual(deploys.map(() => 0));
    expect(linesOf(log, 'begins')).toHaveLength(1);
    expect(linesOf(log, 'ends')).toHaveLength(1);
    expect(linesOf(log, 'overlaps')).toEqual([]);
  });

  it('completes the migration once, and never runs two, when runners are killed', async () => {
    const log = join(folder, 'killed');
    writeFileSync(log, '');
    // A runner that is killed when its command has just ended could not note that: so none ends before that.
    const mayEnd = join(folder, 'may-end');
    const command = migration(log, await freePort(), mayEnd);
    // Long enough for a busy machine: a runner whose lease ended during the command could not record that.
    const options = ['--once', 'v1', '--lease', '8s', '--kill-after', '1s'];
    const deploys = Array.from({ length: DEPLOYS }, (_, index) =>
      exec(['migrate-killed', ...options, ...command], { DEPLOY: String(index) }),
    );
    const killed = new Set<number>();
    for (let kills = 1; kills <= KILLS; kills++) {
      await eventually(() => expect(linesOf(log, 'begins').length).toBeGreaterThanOrEqual(kills), 40_000);
      const runner = Number(linesOf(log, 'begins').at(-1)!.split(' ')[1]);
      await untilGuarded(deploys[runner]!);
      deploys[runner]!.kill('SIGKILL');
      killed.add(runner);
      appendFileSync(log, `killed ${runner}\n`);
      // One that waits, too.
      const waiter = deploys.findIndex((_, index) => !killed.has(index));
      deploys[waiter]!.kill('SIGKILL');
      killed.add(waiter);
    }
    // Until then, the command of the last one that was killed may still run, and would end as well.
    await eventually(() => expect(linesOf(log, 'begins')).toHaveLength(KILLS + 1), 40_000);
    writeFileSync(mayEnd, '');
    const codes = await Promise.all(deploys.map((each) => each.ended));
    expect(codes.filter((_, index) => !killed.has(index))).toEqual(Array(DEPLOYS - killed.size).fill(0));
    expect(linesOf(log, 'overlaps')).toEqual([]);
    expect(linesOf(log, 'ends')).toHaveLength(1);
    expect(linesOf(log, 'begins')).toHaveLength(KILLS + 1);
  });
});
