import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ENTRY = fileURLToPath(new URL('../../../lib/console.ts', import.meta.url));

it('a bundle includes the page: it reads no file, and needs only Nest', async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: [ENTRY],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  const needed = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path));
  expect(needed.filter((path) => /^(?:node:)?fs\b/.test(path))).toEqual([]);
  const packages = needed.filter((path) => !path.startsWith('node:'));
  expect([...new Set(packages)].sort()).toEqual(['@nestjs/common', '@nestjs/core', 'reflect-metadata']);
  expect(outputFiles[0]!.text).toContain('<!doctype html>');
});
