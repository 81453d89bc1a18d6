import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blocksOf, readGuide, ROOT } from '../../test/docs/guides.js';
import { atExit } from '../../test/support/process/at-exit.js';
import { CURL, findTools } from '../../test/support/process/toolchain.mjs';
import { findFreePort } from '../../scripts/redis/free-port.mjs';
import { useRedis } from '../../test/support/redis/redis-server.js';
import { compilerArgs } from './build-sample-app.mjs';

const README = 'sample-app/README.md';
const REDIS_IN_README = 'redis://127.0.0.1:6379';
const PORTS_IN_README = ['3001', '3002'];
const TUTORIAL_MS = 90_000;

const steps = blocksOf(README).filter(({ note }) => note?.startsWith('run'));
const END = (index: number) => `--- end of step ${index} ---`;

describe('the tutorial of the sample app', () => {
  const redis = useRedis();
  let outputs: string[];
  let errors: string;

  beforeAll(async () => {
    findTools([CURL]);
    ({ outputs, errors } = await runAll(redis().url));
  }, TUTORIAL_MS + 10_000);

  it.each(steps.map((step, index) => [step.where, step, index] as const))(
    '%s prints what it says',
    (_, step, index) => {
      expect(errors).toBe('');
      expect(outputs[index]).toEqual(expect.stringMatching(promised(step.code)));
    },
  );

  it('sells too much without the lock', () => {
    const index = steps.findIndex(({ note }) => note === 'run: oversold');
    expect(JSON.parse(outputs[index]!).sold).toBeGreaterThan(20);
  });

  it('is all of the commands but the installation, the build and the demo', () => {
    const others = blocksOf(README).filter((block) => block.language === 'sh' && !block.note?.startsWith('run'));
    const lines = others.flatMap(({ code }) => code.split('\n'));
    const demo = expect.stringMatching(/^npm run demo /);
    expect(lines).toEqual([demo, demo, 'npm ci', 'npx nest build sample-app']);
  });

  if (process.env['TEST_SPEED'] === 'long') {
    it('builds what the tests start in the short form, which the compiler alone has made', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'sample-app-'));
      try {
        execFileSync(process.execPath, compilerArgs(folder), { env: { ...process.env, NODE_OPTIONS: '' } });
        expect(scriptsOf(folder)).toEqual(scriptsOf(join(ROOT, 'dist/sample-app')));
      } finally {
        await rm(folder, { recursive: true });
      }
    });
  }

  it('links files that are there', () => {
    const links = [...readGuide(README).matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => link!);
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => !existsSync(join(ROOT, 'sample-app', link)))).toEqual([]);
  });
});

/** The text of each, by its path. */
function scriptsOf(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  return Object.fromEntries(names.toSorted().map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

/** The lines behind `# `, in which `…` is anything. */
function promised(code: string): RegExp {
  const lines = code.split('\n').filter((line) => line.startsWith('# '));
  const pattern = lines.map((line) =>
    line
      .slice(2)
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll('…', '.*'),
  );
  return new RegExp(`^\\s*${pattern.join('\\s*\\n\\s*')}\\s*$`);
}

/** All steps in one shell, as a reader does, on ports of ours and in a folder of its own. */
async function runAll(redisUrl: string): Promise<{ outputs: string[]; errors: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'tutorial-'));
  await symlink(join(ROOT, 'dist'), join(folder, 'dist'));
  let script = steps.map(({ code }, index) => `${code}\necho; echo '${END(index)}'`).join('\n');
  const ports = new Map<string, string>();
  for (const port of PORTS_IN_README) ports.set(port, String(await findFreePort()));
  script = script.replace(/\b\d{4}\b/g, (number) => ports.get(number) ?? number);
  script = script.replaceAll(REDIS_IN_README, redisUrl);

  const env = { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1' };
  // A group of its own, which is killed with all that the script has started.
  const shell = spawn('bash', ['-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const killAll = (): void => {
    try {
      process.kill(-shell.pid!, 'SIGKILL');
    } catch {
      // It has ended, and so has all that it started.
    }
  };
  const forget = atExit(killAll);
  const tooLate = setTimeout(killAll, TUTORIAL_MS);
  let output = '';
  let errors = '';
  shell.stdout.on('data', (text) => (output += text));
  shell.stderr.on('data', (text) => (errors += text));
  // All of it is read only when those are gone that write to it, too.
  const closed = once(shell, 'close');
  await once(shell, 'exit');
  clearTimeout(tooLate);
  killAll();
  await closed;
  forget();
  await rm(folder, { recursive: true, force: true });
  const outputs = steps.map((_, index) => {
    const [before = '', after = ''] = output.split(END(index));
    output = after;
    return before;
  });
  // Lines of the shell about the instance that the reader kills, and of the package cron about timers that fire late:
  // they do on a busy machine.
  const expected = /^(.*: +\d+ Killed |\[Cron\] Missed execution deadline by ).*\n/gm;
  return { outputs, errors: errors.replace(expected, '') };
}
