// Builds the package from lib/:
//   dist/modules   each source as an ES module, for tools that look at one or change it. Not published
//   dist/esm       for `import`: a file and its types for each entry point, and what the files share
//   dist/cjs       for `require`: the same
// Code that imports only itself, Node and ioredis is in dist/cjs alone, and dist/esm imports it from there: so an error class
// exists once in a process that uses both formats. Nest 12 has ES modules only, so the code that imports it is in both.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = join(root, 'dist');
const modules = join(dist, 'modules');
/** The type of the files in each folder of dist/. */
const FOLDERS = { modules: 'module', esm: 'module', cjs: 'commonjs' };
const OF_BOTH_FORMATS = /^(?:node:.*|ioredis)$/;

const SHARED = {
  external: (id) => /^[^./\0]/.test(id),
  treeshake: false,
  onwarn: ({ code, message }) => {
    // What the compiler writes for decorators looks for helpers in `this`.
    if (code !== 'THIS_IS_UNDEFINED') throw new Error(message);
  },
};
const OUTPUT = { dir: dist, minifyInternalExports: false, hoistTransitiveImports: false };

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
  const project = join(root, 'tsconfig.esm.json');
  const { config } = ts.readConfigFile(project, (path) => readFileSync(path, 'utf8'));
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, root, undefined, project);
  const program = ts.createProgram(fileNames, options);
  const { diagnostics } = program.emit(undefined, undefined, undefined, true);
  const complaints = ts.sortAndDeduplicateDiagnostics([...ts.getPreEmitDiagnostics(program), ...diagnostics]);
  if (complaints.length > 0) {
    console.error(ts.formatDiagnosticsWithColorAndContext(complaints, ts.createCompilerHost(options)));
    process.exit(1);
  }
  const withoutComments = { ...options, declaration: false, removeComments: true };
  ts.createProgram(fileNames, withoutComments, undefined, program).emit();
}

async function bundleCode() {
  const entries = entriesWith('.js');
  const ofBothFormats = modulesOfBothFormats(Object.values(entries));
  // Modules that the same entry points import become one file. This one imports all modules of both formats, so they share
  // no file with others.
  const all = '\0all-of-both-formats';
  const importsAll = {
    name: 'imports-all',
    resolveId: (id) => (id === all ? id : null),
    load: (id) => (id === all ? ofBothFormats.map((file) => `import ${JSON.stringify(file)};\n`).join('') : null),
  };
  const input = { ...entries, [all]: all };
  const bundle = await rollup({ ...SHARED, input, preserveEntrySignatures: 'exports-only', plugins: [importsAll] });
  const isOfBothFormats = ({ moduleIds }) =>
    moduleIds.length > 0 && moduleIds.every((id) => ofBothFormats.includes(id));
  const write = (format, folder, folderOfBoth, change) => {
    const generateBundle = (_options, files) => {
      for (const [path, chunk] of Object.entries(files)) {
        if (chunk.facadeModuleId === all) delete files[path];
        else if (isOfBothFormats(chunk)) change(chunk);
      }
    };
    return bundle.write({
      ...OUTPUT,
      format,
      esModule: true,
      generatedCode: 'es2015',
      entryFileNames: `${folder}/[name].js`,
      chunkFileNames: (chunk) => `${isOfBothFormats(chunk) ? folderOfBoth : `${folder}/parts`}/${roomOf(chunk)}.js`,
      plugins: [{ name: 'of-both-formats', generateBundle }],
    });
  };
  /** The file of each part, by its modules. */
  const parts = new Map();
  await write('cjs', 'cjs', 'cjs/parts', ({ moduleIds, fileName }) => parts.set(moduleIds.join(), fileName));
  await write('es', 'esm', 'cjs/names', (chunk) => {
    const part = posix.relative('cjs/names', parts.get(chunk.moduleIds.join()));
    chunk.code = [
      "'use strict';",
      `const part = require('${part}');`,
      ...chunk.exports.map((name) => `exports.${name} = part.${name};`),
      '',
    ].join('\n');
  });
}

async function bundleTypes() {
  // Its last step imports types from entry points that export them. Some of those need packages that the others do not need.
  const { generateBundle: _lastStep, ...types } = dts();
  const bundle = await rollup({ ...SHARED, input: entriesWith('.d.ts'), plugins: [types] });
  for (const folder of ['cjs', 'esm']) {
    await bundle.write({
      ...OUTPUT,
      entryFileNames: `${folder}/[name].d.ts`,
      chunkFileNames: (chunk) => `${folder}/types/${roomOf(chunk)}.d.ts`,
    });
  }
}

/** Entry point by entry point, its file in dist/modules. */
function entriesWith(extension) {
  return Object.fromEntries(ENTRY_POINTS.map(({ name }) => [name, join(modules, name + extension)]));
}

/** What the entry points import of this kind. They themselves are in both formats. */
function modulesOfBothFormats(entries) {
  const known = new Map();
  const isOne = (file) => {
    if (known.has(file)) return known.get(file);
    const { importedFiles } = ts.preProcessFile(readFileSync(file, 'utf8'));
    // Each is looked at, so that each is in the list.
    const answers = importedFiles.map(({ fileName }) =>
      fileName.startsWith('.') ? isOne(join(dirname(file), fileName)) : OF_BOTH_FORMATS.test(fileName),
    );
    known.set(file, answers.every(Boolean));
    return known.get(file);
  };
  entries.forEach(isOne);
  return [...known.keys()].filter((file) => isOne(file) && !entries.includes(file));
}

/** The room of lib/ that most of a file comes from: stack traces have its name. */
function roomOf({ moduleIds }) {
  const rooms = moduleIds.map((id) => relative(modules, id).split('/')[0]);
  const counts = rooms.map((room) => rooms.filter((other) => other === room).length);
  return rooms[counts.indexOf(Math.max(...counts))];
}
