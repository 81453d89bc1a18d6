// `node test/redis/versions/keep.mjs <commit>` keeps the library of that commit, as the program of a process that locks: one file,
// which is checked in, so that a clone without history has it. See earlier.ts.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const MAIN = 'test/support/process/lock-process-main.ts';

const [commit] = process.argv.slice(2);
if (commit === undefined) throw new Error('Which commit? node test/redis/versions/keep.mjs <commit>');
const git = (...args) => execFileSync('git', args, { cwd: root, maxBuffer: 1e9 });
const sha = git('rev-parse', '--verify', `${commit}^{commit}`).toString().trim();

const folder = mkdtempSync(join(tmpdir(), 'earlier-'));
try {
  execFileSync('tar', ['x', '-C', folder], { input: git('archive', sha, 'lib', 'test/support', 'package.json') });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  // The verbs of today: what a test asks for, whatever the library is.
  cpSync(join(root, MAIN), join(folder, MAIN));
  const { outputFiles } = await build({
    entryPoints: [join(folder, MAIN)],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['ioredis'],
    minify: true,
    keepNames: true,
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
  });
  const program = `// nestjs-redis-lock ${sha}\n${outputFiles[0].text}`;
  writeFileSync(new URL('earlier.mjs.br', import.meta.url), brotliCompressSync(program));
  console.log(`earlier.mjs.br is ${sha}: ${program.length} characters`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
