import { execFileSync } from 'node:child_process';
import type { JobStore } from '../../../../lib/features/jobs/core/job-store.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { type LockInstance, useAdmin, useInstances, untilQueued } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { type CliSurroundings, runHere } from '../run-cli.js';

const NO_COLOR = { NO_COLOR: '1' };

/** `process.slow.test.ts` uses the first one of Redis. */
const DATABASES = process.env['TEST_SPEED'] === 'long' ? [0, 3] : [3];

describe.each(DATABASES)('the commands, in database %d', (database) => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const url = () => `${redis().url}/${database}`;
  const start = useInstances(url);
  const run = (argv: readonly string[], surroundings: CliSurroundings = {}) =>
    runHere(argv, { ...surroundings, env: { REDIS_URL: url(), ...NO_COLOR, ...surroundings.env } });
  const json = async (...argv: string[]) => {
    const { code, stdout } = await run([...argv, '--json']);
    const body = JSON.parse(stdout) as {
      jobs: Record<string, unknown>[];
      state: { holders: unknown[] };
      applications: { keyPrefix: string }[];
    };
    return { code, ...body };
  };

  it('ls names the holder, what it does, and how many wait', async () => {
    const holder = await start();
    const { locks, instanceId } = holder;
    const other = await start();
    const lease = await locks.acquire('order:7', { group: 'Orders.pay' });
    const waits = other.locks.acquire('order:7');
    await untilQueued(holder, 'order:7', other);
    await locks.acquire('invoice:1', { mode: 'read' });

    const { code, stdout, stderr } = await run(['ls']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((row) => row.split('\t'));
    const number = expect.stringMatching(/^\d+$/);
    const { fencingToken } = lease as { fencingToken: number };
    expect(rows).toEqual([
      ['invoice:1', 'read', instanceId, 'invoice', number, number, number, '0', '', 'alive'],
      ['order:7', 'exclusive', instanceId, 'Orders.pay', `${fencingToken}`, number, number, '1', number, 'alive'],
    ]);

    await admin().select(database);
    const listed = async (...argv: string[]): Promise<string> => {
      // A roll call about something else waits until the one before has stood for a second.
      await admin().del('lock:roll');
      return (await run(['ls', ...argv])).stdout;
    };
    expect((await listed('order:')).split('\n')).toHaveLength(2);
    expect(await listed('ord*')).toBe('');
    expect(await listed('--waiting')).toMatch(/^order:7\t[^\n]+\n$/);
    expect(await listed('--group', 'Orders.pay')).toMatch(/^order:7\t[^\n]+\n$/);
    const { stdout: none } = await run(['ls', 'order:', '--group', 'Orders'], { isTerminal: true });
    expect(none).toMatch(/^No locks found that begin with "order:" and that a call of the group "Orders" holds or /);
    expect((await listed('--scan')).split('\n')).toHaveLength(3);
    expect(await json('ls', 'order:')).toMatchObject({
      code: 0,
      schemaVersion: 1,
      keyPrefix: 'lock',
      completeness: 'complete',
      locks: [{ resource: 'order:7', instanceId, fencingToken, waiters: 1, life: 'alive' }],
    });
    await lease.release();
    await waits;
    const inNoGroup = await holder.locks.acquire('42');
    expect((await listed('42')).split('\t')[3]).not.toContain('everything else');
    await inNoGroup.release();
  });

  it('ls says that there is more', async () => {
    const { locks } = await start();
    for (const name of ['a', 'b', 'c']) await locks.acquire(name);
    const { code, stdout, stderr } = await run(['ls', '--limit', '2']);
    expect(code).toBe(5);
    expect(stdout.trimEnd().split('\n')).toHaveLength(2);
    expect(stderr).toContain('There are more than 2 rows.');
  });

  it('finds the prefix by itself, and asks if there are several', async () => {
    const { locks } = await start({ keyPrefix: 'shop:locks' });
    await locks.acquire('a');
    expect(await json('ls')).toMatchObject({ code: 0, keyPrefix: 'shop:locks', locks: [{ resource: 'a' }] });
    const other = await start();
    await other.locks.acquire('b');
    const { code, stderr } = await run(['ls']);
    expect(code).toBe(2);
    expect(stderr).toContain('Choose one with --prefix: "lock", "shop:locks".');
    expect(await json('ls', '--prefix', 'lock')).toMatchObject({ locks: [{ resource: 'b' }] });
  });

  it('status says what it is of each application on that Redis, unless one is stated', async () => {
    for (const keyPrefix of ['lock', 'shop:locks']) await (await start({ keyPrefix })).locks.acquire(keyPrefix);
    await admin().select(database);
    // No prefix can be that.
    await admin().set('a b:fence', '1');
    const { code, stdout, stderr } = await run(['status'], { isTerminal: true });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^APPLICATIONS +2\nprefixes +lock, shop:locks\n\nNothing needs attention in lock\.\n\nSTATUS +up\n/,
    );
    for (const keyPrefix of ['lock', 'shop:locks']) {
      const block = `^STATUS +up\nredis .+ prefix ${keyPrefix}\n(.+\n)*instances +1 answered, 0 silent\nheld +1\n`;
      expect(stdout).toMatch(new RegExp(block, 'm'));
    }
    const applications = { lock: expect.anything(), 'shop:locks': { fleet: { heard: 1, held: 1 } } };
    const of = (body: Awaited<ReturnType<typeof json>>) =>
      Object.fromEntries(body.applications.map((each) => [each.keyPrefix, each]));
    const all = await json('status');
    expect(all).toMatchObject({ code: 0, prefixes: ['lock', 'shop:locks'], knowsAllPrefixes: true });
    expect(of(all)).toMatchObject(applications);
    expect(Object.keys(of(await json('status', '--prefix', 'lock')))).toEqual(['lock']);
  });

  it('status names the applications that are too many to look at', async () => {
    await start();
    await admin().select(database);
    for (let i = 10; i < 30; i++) await admin().set(`app-${i}:fence`, '1');
    const { code, stdout, stderr } = await run(['status']);
    expect(code).toBe(5);
    expect(stdout.split('\n').filter((line) => line.startsWith('redis\t'))).toHaveLength(10);
    expect(stderr).toContain('app-29');
    expect(stderr).toContain('--prefix');
  });

  it('takes no holder for dead whose process is connected, and answers no roll call', async () => {
    // A client of a version without roll calls, or barred from their channel by an ACL.
    const old = admin().duplicate();
    await old.subscribe('lock:inbox:old-1/abcdefgh');
    await (await start()).locks.acquire('new');
    await admin().select(database);
    await admin().set('lock:{old}', `old-1/${'s'.repeat(22)} 1000 600000`, 'PX', 550_000);
    const { code, stdout, stderr } = await run(['ls', 'old', '--scan']);
    expect({ code, state: stdout.trimEnd().split('\t').at(-1) }).toEqual({ code: 5, state: 'does not answer' });
    expect(stderr).toContain('nestjs-redis-lock): "old-1"');
    expect((await run(['why', 'old'])).stdout).toMatch(/^old-1: its process is connected, but does not answer/);
    await admin().set('lock:{gone}', `gone-1/${'s'.repeat(22)} 1000 600000`, 'PX', 550_000);
    expect((await run(['why', 'gone'])).stdout).toMatch(/^gone-1: it is unclear whether the holder is alive: /);
    old.disconnect();
  });

  it('says that no application is there', async () => {
    expect(await run(['ls'])).toEqual({
      code: 0,
      stdout: '',
      stderr: 'No application keeps locks in this Redis yet. Using the prefix lock.\n',
    });
  });

  it('why tells a dead holder from one that renews', async () => {
    const alive = await start({ defaults: { leaseMs: 2_000 } });
    await alive.locks.acquire('alive');
    const { code, stdout } = await run(['why', 'alive']);
    expect(code).toBe(0);
    expect(stdout.split('\n')[0]).toMatch(
      /: its lease was renewed between two checks: the holder is alive\. Its work: alive\.$/,
    );

    // As a process leaves it that was killed: renewed last 450 s ago.
    const owner = `dead-1/${'s'.repeat(22)}`;
    await admin().select(database);
    await admin().set('lock:{dead}', `${owner} 1000 600000`, 'PX', 150_000);
    await admin().select(0);
    const dead = await run(['why', 'dead']);
    expect(dead.stdout.split('\n')[0]).toMatch(
      /^dead-1: it has no subscription, and has missed two renewals: the holder is dead. The lock is free in 2 min (30|29|28|27) s\.$/,
    );
    expect(dead.stdout).not.toContain('ssss');
    expect(await json('why', 'dead')).toMatchObject({ cause: 'holderDead', state: { resource: 'dead' } });
  });

  it('why says that a resource is free', async () => {
    const { locks } = await start();
    await locks.acquire('other');
    expect(await run(['why', 'free'])).toMatchObject({
      code: 0,
      stdout: '"free" is free: no process holds it, and none waits for it.\n',
    });
  });

  describe('release', () => {
    const held = async () => {
      const holder = await start();
      const { fencingToken } = (await holder.locks.acquire('order:7')) as { fencingToken: number };
      return { holder, fencingToken };
    };
    const isHeld = async ({ locks }: LockInstance) => (await locks.inspect('order:7')).holders.length === 1;

    it('without a token says who holds it, and changes nothing', async () => {
      const { holder, fencingToken } = await held();
      const { code, stdout, stderr } = await run(['release', 'order:7', '--yes']);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(`"order:7" has been held by ${holder.instanceId} for `);
      expect(stderr).toContain('Ending a lease does not stop its holder');
      expect(stderr).toContain(`release order:7 --token ${fencingToken}`);
      expect(await isHeld(holder)).toBe(true);
    });

    it.each(['order:7$(exit 9)', "-f 'x';y"])('prints a line that ends %j when a shell runs it', async (name) => {
      const { locks } = await start();
      await locks.acquire(name);
      const { stderr } = await run(['release', '--', name]);
      const line = stderr.split('To end a lease: ')[1]!.trim().replace('<why>', 'OPS-17');
      const pasted = `set -e; npx() { [ "$1" = nestjs-redis-lock ]; shift; printf '%s\\0' "$@"; }; ${line}`;
      const argv = execFileSync('bash', ['-c', pasted], { encoding: 'utf8' }).split('\0').slice(0, -1);
      expect(await run(['--yes', ...argv])).toMatchObject({ code: 0 });
      expect((await locks.inspect(name)).holders).toEqual([]);
    });

    it('without a terminal needs --yes', async () => {
      const { holder, fencingToken } = await held();
      const line = ['release', 'order:7', '--token', `${fencingToken}`];
      expect(await run(line)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('add --yes. Nothing was changed.'),
      });
      expect(await isHeld(holder)).toBe(true);
      expect(await run([...line, '--yes', '--by', 'ann', '--reason', 'OPS-17'])).toMatchObject({ code: 0 });
      expect(await isHeld(holder)).toBe(false);
    });

    it.each([
      ['y', 0],
      ['yes', 0],
      ['', 2],
      ['no', 2],
    ])('asks at a terminal: "%s" ends with %d', async (typed, code) => {
      const { holder, fencingToken } = await held();
      const ended = await run(['release', 'order:7', '--token', `${fencingToken}`], { typed });
      expect(ended.stderr).toContain('End this lease? [y/N]');
      expect(ended.code).toBe(code);
      expect(await isHeld(holder)).toBe(code !== 0);
    });

    it('leaves a later lease alone, and one of another resource', async () => {
      const { holder, fencingToken } = await held();
      const { code, stderr } = await run(['release', 'order:7', '--yes', '--token', `${fencingToken + 320}`]);
      expect(code).toBe(1);
      expect(stderr).toContain(`Tokens of its current leases: ${fencingToken}. Nothing was changed.`);
      expect((await run(['release', 'nothing', '--yes', '--token', '7'])).code).toBe(1);
      expect(await isHeld(holder)).toBe(true);
    });

    it('grants nothing, because it knows no restartQuarantineMs: the next waiter asks at once', async () => {
      const { holder, fencingToken } = await held();
      const [next, careful] = [await start(), await start({ restartQuarantineMs: 600_000 })];
      const end = async (token: number) =>
        expect(await run(['release', 'order:7', '--yes', '--token', `${token}`])).toMatchObject({ code: 0 });
      // Its next keep would be in 15 s.
      const waits = next.locks.acquire('order:7', { leaseMs: 60_000, waitMs: 12_000 });
      await untilQueued(holder, 'order:7', next);
      await end(fencingToken);
      const lease = (await waits) as { fencingToken: number };

      const waiter = { resource: 'order:7', id: `${careful.store.clientId}/waiter`, mode: 'exclusive' } as const;
      await holder.store.acquire(waiter, 60_000, { sentAt: 0, maxWaiters: 10 });
      await end(lease.fencingToken);
      expect(await holder.locks.inspect('order:7')).toMatchObject({ holders: [], waiters: [{}] });
    });

    it('refuses what is too long for a log before it sends anything', async () => {
      const { holder, fencingToken } = await held();
      const line = ['release', 'order:7', '--yes', '--token', `${fencingToken}`, '--by', 'a'.repeat(101)];
      expect(await run(line)).toMatchObject({ code: 2, stderr: expect.stringContaining('--by must be') });
      expect(await isHeld(holder)).toBe(true);
    });
  });

  it('leaders names the leader and how many candidates wait', async () => {
    const leader = await start();
    const { instanceId } = leader;
    const other = await start();
    await leader.locks.campaign('mailer').whenElected();
    other.locks.campaign('mailer');
    await untilQueued(leader, 'leader:mailer', other);
    expect(await json('leaders')).toMatchObject({
      code: 0,
      leaders: [{ name: 'mailer', leader: instanceId, life: 'alive', candidates: 1, elections: 1 }],
    });
    expect((await run(['leaders'])).stdout).toMatch(
      new RegExp(`^mailer\t${instanceId}\talive\t\\d+\t\\d+\t\\d+\t1\t1\n$`),
    );
  });

  describe('jobs', () => {
    const withJob = async () => {
      const { store, instanceId, locks } = await start();
      await (await locks.acquire('a')).release();
      const jobs: JobStore = new RedisJobStore(store);
      await jobs.register([
        { resource: 'cron:nightly', schedule: '0 3 * * * Europe/Berlin', next: Date.now() + 3_600_000 },
      ]);
      return { jobs, instanceId };
    };

    it('are listed, and shown one by one', async () => {
      const { instanceId } = await withJob();
      expect(await json('jobs')).toMatchObject({
        code: 0,
        jobs: [{ name: 'nightly', cron: '0 3 * * *', timeZone: 'Europe/Berlin', missed: 0 }],
      });
      expect((await run(['jobs'])).stdout).toMatch(/^nightly\twaits\t\d{4}-/);
      const { stdout } = await run(['job', 'nightly'], { isTerminal: true });
      expect(stdout).toMatch(/^schedule +0 3 \* \* \* Europe\/Berlin$/m);
      expect(stdout).toMatch(new RegExp(`^${instanceId} +`, 'm'));
    });

    it('are paused for a time, and resumed', async () => {
      await withJob();
      expect(await run(['job', 'nightly', '--pause', '2h', '--by', 'ann', '--reason', 'OPS-17'])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^Paused nightly for 2 h, until \d{4}-.+Z\.\n$/),
      });
      expect(await json('jobs')).toMatchObject({ jobs: [{ pause: { by: 'ann', reason: 'OPS-17' } }] });
      expect((await run(['jobs'], { isTerminal: true })).stdout).toMatch(/ paused by ann for .+: "OPS-17" /);
      const { stdout } = await run(['job', 'nightly']);
      expect(stdout.split('\n').slice(0, 4)).toEqual([
        'state\tpaused',
        'paused by\tann',
        expect.stringMatching(/^paused until\t\d{4}-/),
        'reason\tOPS-17',
      ]);
      const forever = await run(['job', 'nightly', '--pause', '--by', 'ann']);
      expect(forever).toMatchObject({ code: 0, stdout: 'Paused nightly until you resume it.\n' });
      expect((await json('jobs')).jobs[0]?.['pause']).toEqual({ at: expect.any(Number), by: 'ann' });
      const long = await run(['job', 'nightly', '--pause', '2h', '--reason', 'x'.repeat(201)]);
      expect(long).toMatchObject({ code: 2, stderr: expect.stringContaining('--reason') });
      expect(await run(['job', 'nightly', '--resume'])).toMatchObject({ code: 0, stdout: 'Resumed nightly.\n' });
      expect(await run(['job', 'nightly', '--resume'])).toMatchObject({ code: 1 });
      expect((await json('jobs')).jobs[0]?.['pause']).toBeUndefined();
    });

    it('show their history', async () => {
      await withJob();
      expect(await json('job', 'nightly', '--history')).toMatchObject({ code: 0, job: 'nightly', runs: [] });
    });

    it.each([[[]], [['--run']], [['--pause', '1h']], [['--resume']], [['--history']]])(
      'that are not known end with 1: %j',
      async (options) => {
        await withJob();
        const { code, stderr } = await run(['job', 'nihgtly', ...options]);
        expect(code).toBe(1);
        expect(stderr).toBe('The fleet has no job called "nihgtly". Did you mean "nightly"?\n');
      },
    );
  });
});
