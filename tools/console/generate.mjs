// Writes the console's browser files as constants: without reading files at run time, bundlers can include them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { minify } from '@swc/core';
import { build, transform } from 'esbuild';

const folder = join(import.meta.dirname, 'page');

/**
 * The shell, the script and the style as they are served. The script is one module.
 *
 * @returns {Promise<{ shell: string, script: string, style: string }>}
 */
export async function buildPage() {
  const { outputFiles } = await build({
    entryPoints: [join(folder, 'main.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2023',
    charset: 'utf8',
    minify: true,
    legalComments: 'none',
    tsconfigRaw: { compilerOptions: { useDefineForClassFields: false } },
  });
  // swc finds names that compress better: 300 bytes of 12,000.
  const script = await minify(outputFiles[0].text, { module: true, compress: { passes: 3 }, mangle: true });
  const style = await transform(readFileSync(join(folder, 'console.css'), 'utf8'), {
    loader: 'css',
    minify: true,
    charset: 'utf8',
  });
  const shell = readFileSync(join(folder, 'console.html'), 'utf8').replace(/>\s+</g, '><');
  return {
    shell: shell.trim(),
    script: script.code.trim(),
    style: style.code.replaceAll(/(?<=--\w+:|,) /g, '').trim(),
  };
}

/** @returns {Promise<string>} the file of lib/ */
export async function generatePage() {
  const { shell, script, style } = await buildPage();
  return `// Written by \`npm run console\` from tools/console/page. Do not edit.

/** What a browser loads: without files, so that bundlers carry it along. */
export const PAGE: Readonly<Record<'shell' | 'style' | 'script', string>> = {
  shell:
    ${JSON.stringify(shell)},
  style:
    ${JSON.stringify(style)},
  script:
    ${JSON.stringify(script)},
};
`;
}
