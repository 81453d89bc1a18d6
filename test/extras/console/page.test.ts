import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { PAGE } from '../../../lib/extras/console/page/page.generated.js';
import { generatePage } from '../../../tools/console/generate.mjs';

const ROOT = join(import.meta.dirname, '../../..');
const SOURCES = join(ROOT, 'tools/console/page');

describe('the page of the console', () => {
  it('is what its sources make; if not: npm run console', async () => {
    expect(readFileSync(join(ROOT, 'lib/extras/console/page/page.generated.ts'), 'utf8')).toBe(await generatePage());
  });

  it('is at most 40 kB, and 14 kB compressed', () => {
    const files = Object.values(PAGE);
    const sum = (sizes: number[]): number => sizes.reduce((a, b) => a + b, 0);
    expect(sum(files.map((text) => Buffer.byteLength(text)))).toBeLessThanOrEqual(40_000);
    expect(sum(files.map((text) => gzipSync(text, { level: 9 }).length))).toBeLessThanOrEqual(14_000);
  });

  it('has no script and no style in its shell, and only relative addresses', () => {
    expect(PAGE.shell).not.toMatch(/<style|style=|<script>|\son\w+=/);
    const addresses = [...PAGE.shell.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, address]) => address);
    expect(addresses).toEqual(['console.css', 'console.js']);
    expect(PAGE.style).not.toMatch(/url\(|@import/);
  });

  it('writes names as text alone', () => {
    const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    expect(sources.length).toBeGreaterThan(8);
    for (const name of sources) {
      const source = readFileSync(join(SOURCES, name), 'utf8');
      expect([name, source.match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b/g)]).toEqual([
        name,
        null,
      ]);
    }
  });

  it('begins no script that a comment or a tag in it could end', () => {
    expect(PAGE.script).not.toContain('</script');
  });
});

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
