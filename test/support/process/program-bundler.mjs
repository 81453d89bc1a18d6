// `node <this file> <main> <program> <JSON of what is replaced, or null> <changes>`: makes one JavaScript file, the program, of a
// TypeScript file and of all that it imports, and writes beside it what it is made of. See program.ts.
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

const [main, program, replacedJson, changes] = process.argv.slice(2);
const replaced = JSON.parse(replacedJson);

/** Modules of ours. In one file all of them would be where that is. */
const sources = {
  name: 'sources',
  setup({ onLoad }) {
    onLoad({ filter: /\.(ts|mjs|js)$/ }, async ({ path }) => {
      if (path.includes('/node_modules/')) return undefined;
      const text = path === replaced?.file ? replaced.text : readFileSync(path, 'utf8');
      const contents = path.endsWith('.ts') ? await compileTypescript(text, path) : text;
      return {
        contents: contents.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
        loader: 'js',
      };
    });
  },
};

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
  plugins: [sources],
});

const inputs = Object.keys(metafile.inputs).map((path) => resolve(path));
if (replaced && !inputs.includes(replaced.file)) throw new Error(`${main} loads nothing from ${replaced.file}`);

publishFile(program, outputFiles[0].text);
const stats = inputs.map((path) => [path, statSync(path).size, statSync(path).mtimeMs]);
// What has changed meanwhile may be in it or not.
if (stats.every(([, , mtimeMs]) => mtimeMs < startedAt)) {
  publishFile(`${program}.json`, JSON.stringify({ changes, inputs: stats }));
}
