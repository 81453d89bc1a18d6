// Makes JavaScript files, the programs, each of a TypeScript file and of all that it imports, and writes beside each what it is made
// of. Reads from stdin, as JSON, a list of { main, program, replaced, changes }. See program.ts.
import { readFileSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, transform } from 'esbuild';
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

/** Where the text of a file stands that some programs have another one of. */
const GAP = /\b__gap\(("[^"]+")\)/g;
/** What esbuild makes of imports and exports in a function. */
const REQUIRED = /(?<=\brequire\()"[^"]+"(?=\))/g;
const EXPORTED = /^ {2}(\w+): \(\) => \1,?$/gm;
/** What those have there that do not. */
const originals = new Map();

/** A file as a function, so that it can stand in a gap. */
async function functionOf(path, text) {
  const { contents } = inProgram(path, text);
  const { code } = await transform(contents, { format: 'cjs', platform: 'node', target: 'node20', keepNames: true });
  return `((require, module) => {\n${code}})`;
}

/** What calls the function in the gap. It has to import what the file does, so that this is in the bundle. */
async function aroundGap(path) {
  const original = await functionOf(path, readFileSync(path, 'utf8'));
  originals.set(path, original);
  const imported = [...new Set(original.match(REQUIRED))];
  const exported = [...original.matchAll(EXPORTED)].map(([, name]) => name);
  const contents = [
    ...imported.map((name, index) => `import * as import${index} from ${name};`),
    'const file = { exports: {} };',
    `const imports = { ${imported.map((name, index) => `${name}: import${index}`).join(', ')} };`,
    `__gap(${JSON.stringify(path)})((name) => imports[name], file);`,
    `export const { ${exported.join(', ')} } = file.exports;`,
  ].join('\n');
  return { contents, loader: 'js' };
}

const sourcesWithout = (replaced) => ({
  name: 'sources',
  setup({ onLoad }) {
    onLoad({ filter: /\.(ts|mjs|js)$/ }, ({ path }) => {
      if (path.includes('/node_modules/')) return undefined;
      if (replaced.has(path)) return aroundGap(path);
      if (!known.has(path)) known.set(path, moduleOf(path));
      return known.get(path);
    });
  },
});

const wanted = JSON.parse(readFileSync(0, 'utf8'));
for (const isChanged of [false, true]) {
  const programs = wanted.filter(({ replaced }) => (replaced !== null) === isChanged);
  if (programs.length > 0) await make(programs, new Set(programs.flatMap(({ replaced }) => replaced?.file ?? [])));
}

/**
 * @param programs import the same files, which are read once for all of them
 * @param {Set<string>} replaced those that are another one in some of them
 */
async function make(programs, replaced) {
  const startedAt = Date.now();
  const mains = new Map(programs.map(({ main, program }) => [main, basename(program, '.mjs')]));
  const { outputFiles, metafile } = await build({
    entryPoints: [...mains].map(([main, name]) => ({ in: main, out: name })),
    outdir: dirname(programs[0].program),
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: EXTERNAL,
    // What is published has few files, of which none can be replaced alone.
    alias: replaced.size > 0 ? { 'nestjs-redis-lock': MODULES } : {},
    // The package is what is built, and not what its name stands for while types are checked.
    tsconfigRaw: {},
    banner: { js: BANNER },
    // Errors and providers are known by the names of their classes.
    keepNames: true,
    metafile: true,
    write: false,
    logLevel: 'error',
    plugins: [sourcesWithout(replaced)],
  });

  for (const [path, { entryPoint }] of Object.entries(metafile.outputs)) {
    const { text } = outputFiles.find((file) => file.path === resolve(path));
    const inputs = importedBy(entryPoint, metafile).map((input) => resolve(input));
    for (const { main, program, replaced: change, changes } of programs) {
      if (main !== resolve(entryPoint)) continue;
      if (change && !inputs.includes(change.file)) throw new Error(`${main} loads nothing from ${change.file}`);
      const changed = change && (await functionOf(change.file, change.text));
      const inGap = (file) => (file === change?.file ? changed : originals.get(file));
      publishFile(
        program,
        text.replace(GAP, (_, file) => inGap(JSON.parse(file))),
      );
      const stats = inputs.map((input) => [input, statSync(input).size, statSync(input).mtimeMs]);
      // What has changed meanwhile may be in it or not.
      if (stats.every(([, , mtimeMs]) => mtimeMs < startedAt)) {
        publishFile(`${program}.json`, JSON.stringify({ changes, inputs: stats }));
      }
    }
  }
}

/** The file itself, and all that it imports, also what nothing is used of. */
function importedBy(file, { inputs }) {
  const found = new Set([file]);
  for (const each of found) for (const { path, external } of inputs[each].imports) if (!external) found.add(path);
  return [...found];
}
