// Makes JavaScript files, the programs, each of a TypeScript file and of all that it imports, and writes beside each what it is made
// of. Reads from stdin, as JSON, a list of { main, program, replaced, changes }. See program.ts.
import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
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

const wanted = JSON.parse(readFileSync(0, 'utf8'));
const [changed, plain] = [true, false].map((is) => wanted.filter(({ replaced }) => (replaced !== null) === is));
// Those in which nothing is replaced import the same files, which are read once for all of them.
if (plain.length > 0) await make(plain);
for (const one of changed) await make([one]);

/** @param programs in which the same file is replaced, or none */
async function make(programs) {
  const startedAt = Date.now();
  const { replaced } = programs[0];
  const { outputFiles, metafile } = await build({
    entryPoints: programs.map(({ main, program }) => ({ in: main, out: basename(program, '.mjs') })),
    outdir: dirname(programs[0].program),
    outExtension: { '.js': '.mjs' },
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

  for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) {
    const { main, program, changes } = programs.find((one) => one.program === resolve(path));
    const inputs = importedBy(entryPoint, metafile).map((input) => resolve(input));
    if (replaced && !inputs.includes(replaced.file)) throw new Error(`${main} loads nothing from ${replaced.file}`);

    publishFile(program, outputFiles.find((file) => file.path === program).text);
    const stats = inputs.map((input) => [input, statSync(input).size, statSync(input).mtimeMs]);
    // What has changed meanwhile may be in it or not.
    if (stats.every(([, , mtimeMs]) => mtimeMs < startedAt)) {
      publishFile(`${program}.json`, JSON.stringify({ changes, inputs: stats }));
    }
  }
}

/** The file itself, and all that it imports, also what nothing is used of. */
function importedBy(file, { inputs }) {
  const found = new Set([file]);
  for (const each of found) for (const { path, external } of inputs[each].imports) if (!external) found.add(path);
  return [...found];
}
