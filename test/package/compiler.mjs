// The compilers of the consumers, each loaded once: of a small project, most of the time goes to loading one and getting it going.
// A message is a project, `{ id, folder, config }`; the answer is what `tsc` would print, `{ id, output }`.
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const OURS = '/node_modules/nestjs-redis-lock/';
/**
 * By version, each with the files of packages that it has parsed. Consumers share most of these: a file that is the same on the disk is
 * parsed and bound once for all that read it in the same way. A program gives each file its own name.
 */
const compilers = new Map();

process.on('message', ({ id, ...project }) => process.send({ id, output: compile(project) }));
process.on('disconnect', () => process.exit());

function compile({ folder, config }) {
  const { ts, files } = compilerOf(folder);
  const where = dirname(config);
  const system = { ...ts.sys, getCurrentDirectory: () => where, onUnRecoverableConfigFileDiagnostic };
  const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile(config, {}, system);
  const host = { ...ts.createCompilerHost(options), getCurrentDirectory: () => where };
  const { getSourceFile } = host;
  const names = new Map();
  host.getSourceFile = (name, how, ...rest) => {
    if (!name.includes('/node_modules/') || name.includes(OURS)) return getSourceFile(name, how, ...rest);
    const { target, module, strict, isolatedModules } = options;
    const { ino, size } = statSync(name);
    const key = JSON.stringify([ino, size, how.impliedNodeFormat, target, module, strict, isolatedModules]);
    // A project may have the same package in two places, and a file has one name in a program.
    if (names.has(key) && names.get(key) !== name) return getSourceFile(name, how, ...rest);
    names.set(key, name);
    if (!files.has(key)) files.set(key, getSourceFile(name, how, ...rest));
    return files.get(key);
  };
  const program = ts.createProgram(fileNames, options, host);
  const found = [...errors, ...program.getOptionsDiagnostics(), ...compileFiles(program)];
  return ts.formatDiagnostics(ts.sortAndDeduplicateDiagnostics(found), {
    getCurrentDirectory: () => where,
    getCanonicalFileName: (name) => name,
    getNewLine: () => '\n',
  });
}

/**
 * Without `skipLibCheck`, the types of the package have to be right as well. Errors in other packages' types are
 * ignored.
 */
function compileFiles(program) {
  const files = program.getSourceFiles();
  const checked = files.filter(({ fileName, isDeclarationFile }) => !isDeclarationFile || fileName.includes(OURS));
  const perFile = checked.flatMap((file) => [
    ...program.getSyntacticDiagnostics(file),
    ...program.getSemanticDiagnostics(file),
    // File by file: at once, it would check all types.
    ...(file.isDeclarationFile ? [] : program.emit(file).diagnostics),
  ]);
  return [...perFile, ...program.getGlobalDiagnostics()];
}

function compilerOf(folder) {
  const { version } = JSON.parse(readFileSync(join(folder, 'node_modules/typescript/package.json'), 'utf8'));
  if (!compilers.has(version)) {
    const ts = createRequire(join(folder, 'package.json'))('typescript');
    compilers.set(version, { ts, files: new Map() });
  }
  return compilers.get(version);
}

function onUnRecoverableConfigFileDiagnostic({ messageText }) {
  throw new Error(messageText);
}
