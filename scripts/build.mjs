// Builds the package twice from the same source: dist/esm (import) and dist/cjs (require).
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

for (const [format, type] of [
  ['esm', 'module'],
  ['cjs', 'commonjs'],
]) {
  const outDir = join(root, 'dist', format);
  rmSync(outDir, { recursive: true, force: true });
  const project = join(root, `tsconfig.${format}.json`);
  const { status } = spawnSync(process.execPath, [tsc, '-p', project], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1); // tsc has said why
  mkdirSync(outDir, { recursive: true });
  // Without this file, Node would read dist/cjs by the "type" of the root package.json.
  writeFileSync(join(outDir, 'package.json'), `${JSON.stringify({ type })}\n`);
}
