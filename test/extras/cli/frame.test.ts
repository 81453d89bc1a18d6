import { COMMANDS } from '../../../lib/extras/cli/commands.js';
import { COMMON_OPTIONS } from '../../../lib/extras/cli/frame/connection.js';
import { runHere } from './run-cli.js';

const NOWHERE = { env: { REDIS_URL: 'redis://:hunter2@127.0.0.1:1' } };

describe('help', () => {
  it.each([['--help'], ['-h'], ['help']])('of the program is data: %s', async (...argv) => {
    const { code, stdout, stderr } = await runHere(argv);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const { name, summary } of COMMANDS) {
      expect(stdout.split('\n')).toContainEqual(expect.stringMatching(new RegExp(`^  ${name} `)));
      expect(stdout).toContain(summary);
    }
    expect(stdout.split('\n').filter((line) => line.length > 120)).toEqual([]);
  });

  it.each(COMMANDS.map(({ name }) => name))('of %s names each option, and needs no Redis', async (name) => {
    const command = COMMANDS.find((each) => each.name === name)!;
    for (const argv of [
      [name, '--help'],
      ['help', name],
    ]) {
      const { code, stdout } = await runHere(argv);
      expect(code).toBe(0);
      for (const option of Object.keys({ ...command.options, ...COMMON_OPTIONS })) {
        expect(stdout).toContain(`--${option}`);
      }
    }
  });

  it('prints to stderr without a command', async () => {
    const { code, stdout, stderr } = await runHere([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: nestjs-redis-lock <command>');
  });

  it('passes arguments after -- on unchanged', async () => {
    expect((await runHere(['ls', '--timeout', '100ms', '--', '--help'], NOWHERE)).stdout).not.toContain('Usage');
  });

  it('says the version', async () => {
    expect(await runHere(['--version'])).toMatchObject({ code: 0, stdout: '1.2.3\n' });
  });
});

describe('a command line that is wrong', () => {
  it.each<[string[], string]>([
    [['lss'], 'There is no command "lss". Did you mean ls?'],
    [['jbos'], 'Did you mean jobs?'],
    [['flushall'], 'There is no command "flushall". nestjs-redis-lock --help lists the commands.'],
    [['ls', '--waitng'], 'ls has no option "--waitng". Did you mean --waiting?'],
    [['ls', '--waiting=yes'], '--waiting takes no value.'],
    [['ls', '--limit'], '--limit needs a value: --limit <number>.'],
    [['ls', '--limit', '--json'], '--limit needs a value'],
    [['ls', '--limit=0'], '--limit must be a whole number, 1 or more, not "0".'],
    [['ls', '--timeout', '30d'], '--timeout may be at most 60 min, not 30d.'],
    [['job', 'nightly', '--pause', '--resume'], 'Pass only one of --history, --pause'],
    [['job', 'nightly', '--pause', 'tonight'], '--pause must be a duration such as'],
    [['exec', 'order:7', '--', ''], 'exec needs a command behind --: exec … -- command …. An empty variable is none.'],
    [['ls', '--timeout', '5'], '--timeout must be a duration such as 500ms, 30s'],
    [['ls', 'a', 'b'], 'ls takes no "b".'],
    [['why'], 'why needs a resource.'],
    [['ls', '--prefix', '{x}'], '--prefix must be 1 to 100 characters'],
    [['ls', '--url', 'redis://a', '--config', 'b'], 'Pass either --url or --config, not both.'],
    [['job', 'a', '--run', '--resume'], 'Pass only one of --history, --pause, --resume and --run.'],
    [['completion', 'tcsh'], 'completion supports bash, zsh, fish'],
  ])('%j ends with 2 and says how to write it', async (argv, message) => {
    const { code, stdout, stderr } = await runHere(argv, NOWHERE);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('lists the ways to configure Redis', async () => {
    const { code, stderr } = await runHere(['ls']);
    expect(code).toBe(2);
    expect(stderr).toBe('Pass the address of Redis with --url, REDIS_URL in the environment, or --config.\n');
  });

  it.each([
    ['redis-cli', 'connection must be a URL'],
    ['redis://', 'connection must be a URL'],
  ])('says what is wrong with the URL %s', async (url, message) => {
    const { code, stderr } = await runHere(['ls', '--url', url]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  });
});

describe('an unreachable Redis', () => {
  it('ends with 3 within the time, with one sentence and without the password', async () => {
    const { code, stdout, stderr } = await runHere(['ls', '--timeout', '300ms'], NOWHERE);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toBe(
      'The command line is not connected to Redis at 127.0.0.1:1 (connect ECONNREFUSED 127.0.0.1:1).\n',
    );
  });

  it('warns of a password that others can see', async () => {
    const { stderr } = await runHere(['ls', '--timeout', '100ms', '--url', NOWHERE.env.REDIS_URL]);
    expect(stderr).toContain('--url has a password in it, which every user of this machine can see.');
    expect(stderr).not.toContain('hunter2');
  });
});

describe('--config', () => {
  const withModule = (exported: object) => ({ load: () => Promise.resolve(exported) });
  it.each<[object, string]>([
    [{}, 'has no default export'],
    [{ default: { uri: 'redis://a' } }, 'as another library takes it'],
    [{ default: 'redis://a', keyPrefix: 7 }, 'keyPrefix of --config'],
  ])('that exports %j is refused', async (exported, message) => {
    const { code, stderr } = await runHere(['ls', '--config', 'locks.mjs'], withModule(exported));
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  });

  it('that cannot be loaded is refused', async () => {
    const { code, stderr } = await runHere(['ls', '--config', 'locks.mjs']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: '--config "locks.mjs" cannot be loaded: no module\n' });
  });
});

it.each(['bash', 'zsh', 'fish'])('completion for %s names each command and option', async (shell) => {
  const { code, stdout } = await runHere(['completion', shell]);
  expect(code).toBe(0);
  for (const { name, options } of COMMANDS) {
    expect(stdout).toContain(name);
    for (const option of Object.keys(options)) expect(stdout).toContain(option);
  }
});

it('completion with --json prints the script as JSON', async () => {
  const { code, stdout } = await runHere(['completion', 'bash', '--json']);
  const body = JSON.parse(stdout) as { shell: string; script: string };
  expect({ code, shell: body.shell }).toEqual({ code: 0, shell: 'bash' });
  expect(`${body.script}\n`).toBe((await runHere(['completion', 'bash'])).stdout);
});
