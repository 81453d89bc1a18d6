import type { Redis } from 'ioredis';
import { eventually } from '../../../../support/expect/eventually.js';
import { connectAdmin } from '../../../../support/redis/admin-client.js';
import { useRedis } from '../../../../support/redis/redis-server.js';
import { runHere } from '../../run-cli.js';
import { ENDLESS, isRunning, node, pidOf, RUNS_ON, SAYS_RAN, shell, useExec } from './exec-process.js';

const redis = useRedis();
const exec = useExec(() => redis().url);
let client: Redis;

beforeAll(() => {
  client = connectAdmin(redis().port);
});
afterAll(() => client.disconnect());

const isHeld = async (resource: string): Promise<boolean> => (await client.exists(`lock:{${resource}}`)) === 1;

describe('the command of exec', () => {
  it('runs under the lock, with the fencing token in its environment', async () => {
    const code = 'console.log(process.env.LOCK_RESOURCE, process.env.LOCK_FENCING_TOKEN);';
    const first = exec(['token', ...node(code)]);
    await expect(first.ended).resolves.toBe(0);
    const second = exec(['token', ...node(code)]);
    await second.ended;
    const [, token] = /^token (\d+)\n$/.exec(first.stdout)!;
    const [, next] = /^token (\d+)\n$/.exec(second.stdout)!;
    expect(Number(next)).toBeGreaterThan(Number(token));
    await expect(isHeld('token')).resolves.toBe(false);
  });

  it('has stdin, stdout and stderr of exec', async () => {
    const run = exec(['pipes', ...node('process.stdin.pipe(process.stdout); console.error("to stderr");')]);
    run.child.stdin!.end('from stdin');
    await expect(run.ended).resolves.toBe(0);
    expect(run.stdout).toBe('from stdin');
    expect(run.stderr).toContain('to stderr');
  });

  it('decides the exit code', async () => {
    const codes: [what: string, command: string[], code: number][] = [
      ['its exit code', shell('exit 7'), 7],
      ['128 and the number of the signal that ended it', shell('kill -KILL $$'), 137],
      ['127 where there is none', ['--', 'no-such-command-of-mine'], 127],
      ['126 where it cannot be executed', ['--', '/dev/null'], 126],
    ];
    const ended = codes.map(async ([what, command]) => [
      what,
      await exec([what, ...command]).ended,
      await isHeld(what),
    ]);
    expect(await Promise.all(ended)).toEqual(codes.map(([what, , code]) => [what, code, false]));
  });

  it('gets each signal once', async () => {
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
    const codes = signals.map(async (signal) => {
      const code = `
        let heard = 0;
        process.on('${signal}', () => {
          console.log('${signal}', ++heard);
          setTimeout(() => process.exit(30 + heard), 300);
        });
        console.log('ready');
        setInterval(() => {}, 1000);`;
      const run = exec([signal, ...node(code)]);
      await run.says('ready');
      run.kill(signal);
      return [signal, await run.ended];
    });
    expect(await Promise.all(codes)).toEqual(signals.map((signal) => [signal, 31]));
  });

  it('keeps the lock until all processes of its group have ended', async () => {
    const child = `setTimeout(() => console.log('child ends'), 4000);`;
    const code = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(child)}], { stdio: 'inherit' }).unref();`;
    const run = exec(['group', '--lease', '3s', ...node(code)]);
    await run.says('processes that it started still run', 'stderr');
    await expect(isHeld('group')).resolves.toBe(true);
    await expect(run.ended).resolves.toBe(0);
    expect(run.stdout).toBe('child ends\n');
    await expect(isHeld('group')).resolves.toBe(false);
  });

  it('keeps the lease while it is stopped', async () => {
    const run = exec(['stopped', '--lease', '4s', '--kill-after', '200ms', ...ENDLESS]);
    const pid = await pidOf(run);
    process.kill(pid, 'SIGSTOP');
    const other = exec(['stopped', '--wait', '5s', ...shell(':')]);
    await expect(other.ended).resolves.toBe(4);
    run.kill('SIGTERM');
    process.kill(pid, 'SIGCONT');
    await expect(run.ended).resolves.toBe(143);
  });
});

describe('a lock that is held', () => {
  it('is waited for, and the log says who holds it', async () => {
    const holder = exec(['busy', ...ENDLESS]);
    await pidOf(holder);
    const waiter = exec(['busy', ...shell('echo "my turn"')]);
    await waiter.says(/Waiting for "busy" \(.*, at most 10 min\): held by \S+ \(exec, command sh\) for/, 'stderr');
    holder.kill('SIGTERM');
    await expect(waiter.ended).resolves.toBe(0);
    expect(waiter.stdout).toBe('my turn\n');
    await holder.ended;
  });

  it('ends exec as the options say', async () => {
    const endings: [options: string[], code: number][] = [
      [['--if-busy', 'fail'], 4],
      [['--if-busy', 'skip'], 0],
      [['--wait', '50ms'], 4],
      [['--wait', '50ms', '--if-busy', 'skip'], 0],
    ];
    await pidOf(exec(['taken', ...ENDLESS]));
    const runs = endings.map(async ([options]) => {
      const run = exec(['taken', ...options, ...SAYS_RAN]);
      return [options, await run.ended, run.stdout, run.stderr];
    });
    const heldBy = expect.stringMatching(/held by \S+ \(exec, command sh\)/);
    const ended = await Promise.all(runs);
    expect(ended).toEqual(endings.map(([options, code]) => [options, code, '', heldBy]));
    for (const [options, , , stderr] of ended) {
      expect(stderr).toContain(String(options).includes('skip') ? 'The command was not run.' : 'Set a longer --wait');
      expect(stderr).not.toMatch(/waitMs|asked/);
    }
  });

  it('is given up at a signal', async () => {
    const holder = exec(['given-up', ...ENDLESS]);
    await pidOf(holder);
    const waiter = exec(['given-up', ...SAYS_RAN]);
    await waiter.says('Waiting for', 'stderr');
    waiter.kill('SIGTERM');
    await expect(waiter.ended).resolves.toBe(143);
    expect(waiter.stdout).toBe('');
    await eventually(async () => expect(await client.zcard('lock:{given-up}:waiters')).toBe(0));
  });

  it('is shared by readers', async () => {
    const reader = exec(['shared', '--mode', 'read', ...ENDLESS]);
    await pidOf(reader);
    await expect(exec(['shared', '--mode', 'read', ...shell(':')]).ended).resolves.toBe(0);
    await expect(exec(['shared', '--mode', 'write', '--if-busy', 'fail', ...shell(':')]).ended).resolves.toBe(4);
  });
});

describe('the end of exec', () => {
  it('by SIGKILL ends the command, before the lease does', async () => {
    const run = exec(['killed', '--lease', '20s', ...ENDLESS]);
    const pid = await pidOf(run);
    run.kill('SIGKILL');
    await eventually(() => expect(isRunning(pid)).toBe(false));
    await expect(isHeld('killed')).resolves.toBe(true);
    expect(run.stderr).toContain('exec was killed, so its command gets SIGTERM, and SIGKILL after at most ');
  });

  it('by SIGKILL ends a command that ignores SIGTERM', async () => {
    const code = `process.on('SIGTERM', () => console.log('ignored')); ${RUNS_ON}`;
    const run = exec(['stubborn', '--lease', '20s', '--kill-after', '300ms', ...node(code)]);
    const pid = await pidOf(run);
    run.kill('SIGKILL');
    await eventually(() => expect(isRunning(pid)).toBe(false));
    await expect(isHeld('stubborn')).resolves.toBe(true);
    expect(run.stdout).toContain('ignored');
  });

  it('by a stop ends the command when the lease does', async () => {
    const run = exec(['frozen', '--lease', '3s', ...ENDLESS]);
    const pid = await pidOf(run);
    run.kill('SIGSTOP');
    await eventually(() => expect(isRunning(pid)).toBe(false));
    run.kill('SIGCONT');
    await expect(run.ended).resolves.toBe(6);
  });
});

describe('the loss of the lease', () => {
  it('ends the command: by SIGTERM, and then by SIGKILL', async () => {
    const code = `process.on('SIGTERM', () => console.log('asked to end')); ${RUNS_ON}`;
    const run = exec(['lost', '--lease', '900ms', '--kill-after', '200ms', ...node(code)]);
    const pid = await pidOf(run);
    await client.del('lock:{lost}');
    await expect(run.ended).resolves.toBe(6);
    expect(run.stdout).toContain('asked to end');
    expect(isRunning(pid)).toBe(false);
    expect(run.stderr).toMatch(/"lost".*SIGTERM, and SIGKILL after at most 200 ms/);
  });

  it('ends the command before the lease expires if it cannot be renewed', async () => {
    const run = exec(['cut-off', '--lease', '2s', '--kill-after', '1s', ...ENDLESS]);
    await pidOf(run);
    await redis().pause();
    try {
      await expect(run.ended).resolves.toBe(6);
    } finally {
      await redis().resume();
    }
    expect(run.stderr).toMatch(/ends in .*, and could not be renewed.*SIGTERM/);
  });
});

describe('what exec refuses', () => {
  it.each([
    [['x', '--kill-after', '20s', ...shell(':')], 2, /--kill-after may be at most half of the lease/],
    [['x', '--once', '', ...shell(':')], 2, /--once needs a value/],
    [['x', '--keep', '1d', ...shell(':')], 2, /--keep needs --once/],
    [['x', '--once', 'v1', '--mode', 'read', ...shell(':')], 2, /--once needs --mode exclusive/],
    [['x'], 2, /needs a command after --/],
    [['x', '--lease', '1ms', ...shell(':')], 2, /^--lease must be an integer from/],
    [['x', '--restart-quarantine', '10s', ...shell(':')], 2, /--lease may be at most --restart-quarantine \(10 s\)/],
  ])('%j', async (args, code, message) => {
    const run = await runHere(['exec', ...args], { env: { REDIS_URL: redis().url } });
    expect(run).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) });
  });

  it('runs nothing on a Redis that may have forgotten leases', async () => {
    const run = exec(['x', '--restart-quarantine', '24h', '--if-busy', 'skip', ...SAYS_RAN]);
    await expect(run.ended).resolves.toBe(3);
    expect(run.stdout).toBe('');
    expect(run.stderr).toContain('restartQuarantineMs');
  });

  it('runs nothing without a Redis', async () => {
    const run = exec(['x', '--url', 'redis://127.0.0.1:1', '--timeout', '200ms', ...SAYS_RAN]);
    await expect(run.ended).resolves.toBe(3);
    expect(run.stdout).toBe('');
  });
});
