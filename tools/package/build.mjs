// Builds the package from lib/:
//   dist/modules   each source as an ES module, for tools that look at one or change it. Not published
//   dist/esm       for `import`: a file and its types for each entry point, and what the files share
//   dist/cjs       for `require`: the same
// Code that imports only itself, Node and ioredis is in dist/cjs alone, and dist/esm imports it from there: so an error class
// exists once in a process that uses both formats. Nest 12 has ES modules only, so the code that imports it is in both.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = join(root, 'dist');
const modules = join(dist, 'modules');
/** The names that ES modules import from the rooms: see namesOf(). */
const NAMES = 'cjs/names';
/** The program: `bin` of package.json. It is an ES module only, because no code imports it. */
const BIN = 'cli';
/** The type of the files in each folder of dist/. */
const FOLDERS = { modules: 'module', esm: 'module', cjs: 'commonjs' };
const OF_BOTH_FORMATS = /^(?:node:.*|ioredis)$/;

const SHARED = {
  external: (id) => /^[^./]/.test(id),
  treeshake: false,
  onwarn: ({ code, message }) => {
    // The compiler's output for decorators looks for helpers in `this`. A room may have no type that a user can reach.
    if (!['THIS_IS_UNDEFINED', 'EMPTY_BUNDLE'].includes(code)) throw new Error(message);
  },
};
const OUTPUT = {
  dir: dist,
  minifyInternalExports: false,
  hoistTransitiveImports: false,
  // Lazy imports of CommonJS: require() is also for bundlers, and needs no extra file.
  dynamicImportInCjs: false,
};
const TABS = {
  name: 'tabs',
  generateBundle(_options, files) {
    for (const [file, chunk] of Object.entries(files)) {
      chunk.code = withTabs(chunk.code);
      if (!chunk.isEntry && chunk.exports.length === 0) delete files[file];
    }
  },
};

for (const folder of Object.keys(FOLDERS)) rmSync(join(dist, folder), { recursive: true, force: true });
compile();
await bundleCode();
await bundleTypes();
for (const [folder, type] of Object.entries(FOLDERS)) {
  // Without this file, Node would read dist/cjs by the "type" of the root package.json.
  writeFileSync(join(dist, folder, 'package.json'), `${JSON.stringify({ type })}\n`);
}

/** Writes dist/modules: code without comments, and types with them. */
function compile() {
  const compiler = join(root, 'node_modules/typescript-native/bin/tsc');
  // The first one has checked what the second one writes.
  for (const options of [[], ['--declaration', 'false', '--removeComments', 'true', '--noCheck']]) {
    // In one thread: several check much of the packages each.
    const args = [compiler, '--project', join(root, 'tsconfig.esm.json'), '--singleThreaded', ...options];
    // The compiler keeps nearly all that it makes: to look for what it does not need is a quarter of its work.
    const env = { ...process.env, GOGC: 'off' };
    const { status } = spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
}

async function bundleCode() {
  const entries = { ...entriesWith('.js'), [BIN]: join(modules, 'extras/cli/bin.js') };
  const ofBothFormats = modulesOfBothFormats(Object.values(entries));
  const bundle = await rollup({ ...SHARED, input: entries, preserveEntrySignatures: 'exports-only' });
  const generateBundle = (_options, files) => {
    const isOfRoom = ({ fileName }) => fileName.startsWith(NAMES);
    delete files[`cjs/${BIN}.js`];
    const chunks = Object.values(files);
    const imported = new Set(
      chunks.filter((chunk) => !isOfRoom(chunk)).flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports]),
    );
    for (const chunk of chunks) {
      checkClassNames(chunk);
      if (!isOfRoom(chunk)) continue;
      if (imported.has(chunk.fileName)) chunk.code = namesOf(chunk);
      else delete files[chunk.fileName];
    }
  };
  const code = {
    ...OUTPUT,
    esModule: true,
    generatedCode: 'es2015',
    plugins: [{ name: 'names', generateBundle }, TABS],
  };
  await bundle.write({ ...code, format: 'cjs', ...filesOf(ofBothFormats, 'cjs', 'cjs/rooms', '.js') });
  await bundle.write({ ...code, format: 'es', ...filesOf(ofBothFormats, 'esm', NAMES, '.js') });
}

/** Errors and providers are known by the names of their classes. The bundler adds a number where a file has a name twice. */
function checkClassNames({ fileName, code }) {
  const [, name] = /\bclass (\w+)\$\d+/.exec(code) ?? [];
  if (name !== undefined) throw new Error(`${fileName} has two classes that are called ${name}: rename one of them.`);
}

/** For ES modules, instead of the file of the room: Node reads all of the CommonJS that they import to find its names, slowly. */
function namesOf({ name, exports: names }) {
  // Node takes the names from the last part, which never runs.
  return `'use strict';
const room = require('../rooms/${name}.js');
module.exports = room;
0 && (module.exports = { ${names.join(', ')} });
`;
}

/** Replaces the four spaces that the compiler indents by: a tenth of the code. Lines inside of a template are text. */
function withTabs(code) {
  const source = ts.createSourceFile('chunk.ts', code, ts.ScriptTarget.Latest);
  const texts = [];
  const visit = (node) => {
    if (ts.isTemplateLiteralToken(node)) texts.push({ start: node.getStart(source), end: node.end });
    else ts.forEachChild(node, visit);
  };
  visit(source);
  const isText = (index) => texts.some(({ start, end }) => start < index && index < end);
  return code.replace(/^(?: {4})+/gm, (spaces, index) => (isText(index) ? spaces : '\t'.repeat(spaces.length / 4)));
}

async function bundleTypes() {
  const entries = entriesWith('.d.ts');
  const ofBothFormats = modulesOfBothFormats(Object.values(entries));
  // Its last step imports types from entry points that export them. Some of those need packages that the others do not need.
  const { generateBundle: _lastStep, ...types } = dts();
  const bundle = await rollup({ ...SHARED, input: entries, plugins: [types] });
  for (const folder of ['cjs', 'esm']) {
    await bundle.write({ ...OUTPUT, plugins: [TABS], ...filesOf(ofBothFormats, folder, 'cjs/rooms', '.d.ts') });
  }
}

/** Returns the output names: entry points, chunks of one format, and chunks of both formats. */
function filesOf(ofBothFormats, folder, folderOfBoth, extension) {
  const isOfBothFormats = ({ moduleIds }) => moduleIds.some((id) => ofBothFormats.has(id));
  return {
    entryFileNames: `${folder}/[name]${extension}`,
    // The rooms import each other in one direction, so each can be a file. What is loaded late is one, too.
    manualChunks: (id, { getModuleInfo }) => {
      if (!ofBothFormats.has(id)) return undefined;
      if (getModuleInfo(id).dynamicImporters.length > 0) return basename(id, extension);
      // Memory runs the same scripts, and loads no ioredis.
      return roomOf(id) === 'redis' && servesMemory(id, getModuleInfo) ? 'scripts' : roomOf(id);
    },
    chunkFileNames: (chunk) =>
      isOfBothFormats(chunk)
        ? `${folderOfBoth}/${chunk.name}${extension}`
        : `${folder}/parts/${nameOf(chunk)}${extension}`,
  };
}

/** Returns true if the room of the memory store imports a file, directly or not. */
function servesMemory(id, getModuleInfo, seen = new Set()) {
  if (seen.has(id)) return false;
  seen.add(id);
  return getModuleInfo(id).importers.some(
    (each) => roomOf(each) === 'memory' || servesMemory(each, getModuleInfo, seen),
  );
}

/** Entry point by entry point, its file in dist/modules. */
function entriesWith(extension) {
  return Object.fromEntries(ENTRY_POINTS.map(({ name }) => [name, join(modules, name + extension)]));
}

/** Returns the modules of this kind that the entry points import. The entry points themselves exist in both formats. */
function modulesOfBothFormats(entries) {
  const imports = new Map();
  /** Collects the transitive imports of a file: files, and the names of packages. */
  const reach = (from) => {
    const reached = new Set([from]);
    for (const file of reached) {
      if (!isAbsolute(file)) continue;
      if (!imports.has(file)) imports.set(file, importsOf(file));
      for (const each of imports.get(file)) reached.add(each);
    }
    return [...reached];
  };
  const inner = entries.flatMap(reach).filter((file) => isAbsolute(file) && !entries.includes(file));
  return new Set(inner.filter((file) => reach(file).every((each) => isAbsolute(each) || OF_BOTH_FORMATS.test(each))));
}

function importsOf(file) {
  const extension = /(?:\.d\.ts|\.js)$/.exec(file)[0];
  const { importedFiles } = ts.preProcessFile(readFileSync(file, 'utf8'));
  return importedFiles.map(({ fileName }) =>
    fileName.startsWith('.') ? join(dirname(file), fileName.replace(/\.js$/, extension)) : fileName,
  );
}

/** The room of lib/ that most of a file comes from: stack traces have its name. */
function nameOf({ moduleIds }) {
  const rooms = moduleIds.map(roomOf);
  const counts = rooms.map((room) => rooms.filter((other) => other === room).length);
  return rooms[counts.indexOf(Math.max(...counts))];
}

/**
 * Returns the room of a file. The client is a room beside the layers of the kernel, because it imports the features,
 * which build on them. Each folder of features and extras is a room.
 */
function roomOf(id) {
  const [room, inner, part] = relative(modules, id).split('/');
  if (room === 'kernel') return part === undefined ? 'client' : room;
  if (room === 'extras') return inner;
  return room === 'features' ? (part === 'core' ? inner : `${inner}-${part}`) : room;
}
