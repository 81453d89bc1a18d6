// `node --import <this file> child.ts`: child processes of tests run the sources themselves, so they cannot be out of date.
// What a source was compiled to is kept by its contents: a test may start a hundred processes, and for most of them the
// compiler takes longer than all the rest of the start.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { compileTypescript } from './compile-typescript.mjs';
import { publishFile } from './publish-file.mjs';

if (!import.meta.url.includes('?hooks')) register(`${import.meta.url}?hooks`);

const compiled = new URL('../../../node_modules/.cache/typescript-loader/', import.meta.url);
const compiler = readFileSync(new URL('compile-typescript.mjs', import.meta.url), 'utf8');

export function resolve(specifier, context, next) {
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (existsSync(source)) return { url: source.href, shortCircuit: true };
  }
  return next(specifier, context);
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const filename = fileURLToPath(url);
  const text = readFileSync(filename, 'utf8');
  const name = createHash('sha256').update(`${compiler}\0${filename}\0${text}`).digest('hex');
  const known = new URL(`${name}.mjs`, compiled);
  if (existsSync(known)) return { format: 'module', source: readFileSync(known, 'utf8'), shortCircuit: true };
  const source = await compileTypescript(text, filename);
  publishFile(fileURLToPath(known), source);
  return { format: 'module', source, shortCircuit: true };
}
