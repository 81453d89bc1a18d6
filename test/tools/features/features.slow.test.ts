import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../../scripts/setup.mjs';
import { assembleAll } from '../../../tools/lua/assemble.mjs';
import { generate } from '../../../tools/lua/generate.mjs';
import { translate } from '../../../tools/lua/translate.mjs';
import { FEATURES } from './places.mjs';
import { removeFeature } from './remove.mjs';

const run = promisify(execFile);
const COPIES = join(root, 'node_modules/.cache/without-feature');
/** So many files of the kernel may name a feature. */
const MAX_KERNEL_FILES = 3;

const isOfKernel = (file: string): boolean => file.startsWith('kernel/');

/** Copies lib/ with a compiler configuration of its own: nothing in the copy resolves to the original. */
async function copyOfLib(name: string): Promise<string> {
  const copy = join(COPIES, name);
  await rm(copy, { recursive: true, force: true });
  await mkdir(copy, { recursive: true });
  await cp(join(root, 'lib'), join(copy, 'lib'), { recursive: true });
  await writeFile(join(copy, 'package.json'), JSON.stringify({ type: 'module' }));
  const compilerOptions = { rootDir: '.', types: ['node'], paths: {} };
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['lib'], exclude: ['lib/**/page'] };
  await writeFile(join(copy, 'tsconfig.json'), JSON.stringify(config));
  return copy;
}

/** As `npm run lua` does. */
async function assembleScripts(lib: string): Promise<void> {
  const scripts = assembleAll(lib);
  await writeFile(join(lib, 'redis/script/scripts.generated.ts'), generate(scripts));
  await writeFile(join(lib, 'memory/scripts.generated.ts'), await translate(scripts));
}

/** @returns what does not compile */
async function errorsIn(copy: string): Promise<string> {
  const tsc = join(root, 'node_modules/typescript-native/bin/tsc');
  const args = [tsc, '--noEmit', '--singleThreaded', '--pretty', 'false', '-p', copy];
  const { stdout } = await run(process.execPath, args, { cwd: copy }).catch((error: { stdout: string }) => error);
  return stdout;
}

it('the table of features has each folder of lib/features', () => {
  expect(Object.keys(FEATURES).toSorted()).toEqual(readdirSync(join(root, 'lib/features')).toSorted());
});

describe.each(Object.entries(FEATURES))('the feature %s', (name, { lines, with: dependents = [] }) => {
  it(`is named in at most ${MAX_KERNEL_FILES} files of the kernel`, () => {
    expect(Object.keys(lines).filter(isOfKernel).length).toBeLessThanOrEqual(MAX_KERNEL_FILES);
  });

  it('can be removed: its folder, its entry points and the lines that name it, and the rest compiles', async () => {
    const copy = await copyOfLib(name);
    const lib = join(copy, 'lib');
    for (const feature of [...dependents, name]) await removeFeature(lib, feature, FEATURES[feature]!);
    await assembleScripts(lib);
    expect(await errorsIn(copy)).toBe('');
    await rm(copy, { recursive: true });
  }, 300_000);
});

it('all features together are named in four files of the kernel', () => {
  const named = Object.values(FEATURES).flatMap(({ lines }) => Object.keys(lines).filter(isOfKernel));
  expect([...new Set(named)].toSorted()).toEqual([
    'kernel/events/telemetry.ts',
    'kernel/lock-client.ts',
    'kernel/lock-stores.ts',
    'kernel/wire.ts',
  ]);
});
