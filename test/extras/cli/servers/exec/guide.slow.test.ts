import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import { blocksOf } from '../../../../docs/guides.js';
import { programOf } from '../../../../support/process/program.js';
import { useRedis } from '../../../../support/redis/redis-server.js';

const redis = useRedis();
const folder = mkdtempSync(join(tmpdir(), 'exec-guide-'));
const migrations = join(folder, 'migrations');
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(() => {
  const program = programOf(new URL('../../../../../lib/extras/cli/bin.ts', import.meta.url));
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  writeExecutable('node_modules/.bin/nestjs-redis-lock', ['#!/bin/sh', `exec '${process.execPath}' '${program}' "$@"`]);
  // The migration takes a moment, so that the others have to wait.
  writeExecutable('npx', [
    '#!/bin/sh',
    'tool=$1; shift',
    '[ "$tool" = nestjs-redis-lock ] && exec node_modules/.bin/nestjs-redis-lock "$@"',
    `echo "$tool $*" >> '${migrations}'`,
    'sleep 0.5',
    'exit "${MIGRATION_ENDS:-0}"',
  ]);
});
beforeEach(() => writeFileSync(migrations, ''));

function writeExecutable(name: string, lines: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, `${lines.join('\n')}\n`);
  chmodSync(path, 0o755);
  return path;
}

async function run(
  [file, ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ code: number; stdout: string }> {
  const child = spawn(file!, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      PATH: folder + delimiter + process.env['PATH'],
      REDIS_URL: redis().url,
      ...env,
    },
  });
  const code = new Promise<number>((resolve) => child.once('exit', (ended) => resolve(ended ?? -1)));
  return { stdout: await text(child.stdout), code: await code };
}

const blockOf = (language: string, what: string): string =>
  blocksOf('docs/guide/exec.md').find((block) => block.language === language && block.code.includes(what))!.code;

const times = <T>(count: number, of: () => T): T[] => Array.from({ length: count }, of);

it('the entry point of a container migrates once, and then starts each application', async () => {
  const entryPoint = writeExecutable('docker-entrypoint.sh', [blockOf('sh', '#!/bin/sh')]);
  const start = () => run([entryPoint, 'echo', 'the application starts'], { RELEASE: '1.4.2' });
  const ended = await Promise.all(times(3, start));
  expect(ended).toEqual(times(3, () => ({ code: 0, stdout: 'the application starts\n' })));
  expect(readFileSync(migrations, 'utf8')).toBe('prisma migrate deploy\n');
});

it('the entry point starts no application if the migration fails', async () => {
  const entryPoint = writeExecutable('docker-entrypoint.sh', [blockOf('sh', '#!/bin/sh')]);
  const env = { RELEASE: '1.4.3', MIGRATION_ENDS: '7' };
  await expect(run([entryPoint, 'echo', 'the application starts'], env)).resolves.toEqual({ code: 7, stdout: '' });
});

it('the init container of Kubernetes migrates once', async () => {
  const { initContainers } = parse(blockOf('yaml', 'initContainers')) as {
    initContainers: [{ env: { name: string; value: string }[]; command: string[]; args: string[] }];
  };
  const [{ env, command, args }] = initContainers;
  const RELEASE = env.find(({ name }) => name === 'RELEASE')!.value;
  // As Kubernetes does it.
  const words = [...command, ...args].map((word) => word.replace('$(RELEASE)', `${RELEASE}-kubernetes`));
  const ended = await Promise.all(times(3, () => run(words, {})));
  expect(ended.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(readFileSync(migrations, 'utf8')).toBe('prisma migrate deploy\n');
});

it('the first one-line example works in a shell', async () => {
  const line = blockOf('sh', 'npx nestjs-redis-lock exec');
  await expect(run(['sh', '-c', line], { RELEASE: '1.5.0' })).resolves.toMatchObject({ code: 0 });
  expect(readFileSync(migrations, 'utf8')).toBe('prisma migrate deploy\n');
});
