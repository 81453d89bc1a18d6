import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { describeJobStore, describeLockStore } from '../../../lib/testing/contract/stores/describe-stores.js';
import { blocksOf } from '../../docs/guides.js';
import { compileSnippet } from '../../docs/snippet-program.js';
import { memoryWith } from './broken-stores.js';
import { CollectedTests } from './collected-tests.js';

const PRELOADED = [
  '../../support/process/typescript-loader.mjs',
  '../../docs/snippet-loader.mjs',
  './schema-in-memory.ts',
].map((name) => `--import=${new URL(name, import.meta.url).href}`);

describe('the contract in node:test, as docs/guide/own-store.md shows it', () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'own-store-'));
    const [snippet] = blocksOf('docs/guide/own-store.md').filter(({ code }) => code.includes('describeLockStore('));
    await writeFile(join(folder, 'own-store.mjs'), compileSnippet(snippet!));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  async function run(args: string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: unknown; output: string }> {
    const given = [...PRELOADED, '--test-reporter=tap', ...args, join(folder, 'own-store.mjs')];
    const options = { env: { ...process.env, NODE_OPTIONS: '', ...env }, maxBuffer: 16 * 1024 * 1024 };
    return new Promise((resolve) => {
      execFile(process.execPath, given, options, (error, stdout, stderr) => {
        resolve({ code: error?.code ?? 0, output: stdout + stderr });
      });
    });
  }

  it('passes for a store that keeps to it, each test of it', async () => {
    const { code, output } = await run([]);
    const { all } = new CollectedTests((runner) => {
      describeLockStore(runner, memoryWith({}), { semaphores: false });
      describeJobStore(runner, memoryWith({}), { records: false });
    });
    expect(output).toContain(`# pass ${all.length}\n# fail 0\n`);
    expect(code).toBe(0);
  });

  it('fails for a store that does not, and shows where they differ', async () => {
    const first = '--test-name-pattern=grants a free resource';
    const { code, output } = await run([first], { BROKEN: 'grants what another owner holds' });
    expect(output).toMatch(/not ok 1 - grants a free resource, refuses it to every other owner/);
    expect(output).toMatch(/[+-] +status: 'busy'/);
    expect(output).toMatch(/lib\/testing\/contract\/locks\/leases\.ts:/);
    expect(code).toBe(1);
  });
});
