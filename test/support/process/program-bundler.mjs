// `node <this file> <main>`: makes JavaScript files, the programs, each of a TypeScript file and of all that it imports, and writes
// beside each what it is made of. Reads from stdin, as JSON, a list of { program, replaced, changes }. See program.ts.
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { compileTypescript } from './compile-typescript.mjs';
import { publishFile } from './publish-file.mjs';

/** What Nest loads where it is there. It would bring a second Nest with it: the one that is not in the bundle. */
const EXTERNAL = [
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@nestjs/platform-*',
  'class-validator',
  'class-transformer',
];
/** For CommonJS modules in an ES module. */
const BANNER = "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);";

/** The package, each of its sources as a module. */
const MODULES = fileURLToPath(new URL('../../../dist/modules', import.meta.url));

const [main] = process.argv.slice(2);
/** Modules of ours, as they are in a program: most are the same in all of them. */
const known = new Map();

/** In one file, all modules of ours would be where that is. */
async function moduleOf(path) {
  const text = readFileSync(path, 'utf8');
  return inProgram(path, path.endsWith('.ts') ? await compileTypescript(text, path) : text);
}

function inProgram(path, text) {
  return { contents: text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)), loader: 'js' };
}

const sourcesWith = (replaced) => ({
  name: 'sources',
  setup({ onLoad }) {
    onLoad({ filter: /\.(ts|mjs|js)$/ }, ({ path }) => {
      if (path.includes('/node_modules/')) return undefined;
      if (path === replaced?.file) return inProgram(path, replaced.text);
      if (!known.has(path)) known.set(path, moduleOf(path));
      return known.get(path);
    });
  },
});

for (const { program, replaced, changes } of JSON.parse(readFileSync(0, 'utf8')))
  await make(program, replaced, changes);

async function make(program, replaced, changes) {
  const startedAt = Date.now();
  const { outputFiles, metafile } = await build({
    entryPoints: [main],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: EXTERNAL,
    // What is published has few files, of which none can be replaced alone.
    alias: replaced ? { 'nestjs-redis-lock': MODULES } : {},
    // The package is what is built, and not what its name stands for while types are checked.
    tsconfigRaw: {},
    banner: { js: BANNER },
    // Errors and providers are known by the names of their classes.
    keepNames: true,
    metafile: true,
    write: false,
    logLevel: 'error',
    plugins: [sourcesWith(replaced)],
  });

  const inputs = Object.keys(metafile.inputs).map((path) => resolve(path));
  if (replaced && !inputs.includes(replaced.file)) throw new Error(`${main} loads nothing from ${replaced.file}`);

  publishFile(program, outputFiles[0].text);
  const stats = inputs.map((path) => [path, statSync(path).size, statSync(path).mtimeMs]);
  // What has changed meanwhile may be in it or not.
  if (stats.every(([, , mtimeMs]) => mtimeMs < startedAt)) {
    publishFile(`${program}.json`, JSON.stringify({ changes, inputs: stats }));
  }
}
