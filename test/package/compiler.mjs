// The compilers of the consumers, each loaded once: of a small project, most of the time goes to loading one and getting it going.
// A message is a project, `{ id, folder, config }`; the answer is what `tsc` would print, `{ id, output }`.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const OURS = '/node_modules/nestjs-redis-lock/';
/** By version. */
const compilers = new Map();

process.on('message', ({ id, ...project }) => process.send({ id, output: compile(project) }));
process.on('disconnect', () => process.exit());

function compile({ folder, config }) {
  const { ts, standard } = compilerOf(folder);
  const where = dirname(config);
  const system = { ...ts.sys, getCurrentDirectory: () => where, onUnRecoverableConfigFileDiagnostic };
  const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile(config, {}, system);
  const host = { ...ts.createCompilerHost(options), getCurrentDirectory: () => where };
  const { getSourceFile } = host;
  host.getSourceFile = (name, version, ...rest) => {
    if (!name.startsWith(standard.folder)) return getSourceFile(name, version, ...rest);
    const key = JSON.stringify([name, options.target, options.strict]);
    if (!standard.files.has(key)) standard.files.set(key, getSourceFile(name, version, ...rest));
    return standard.files.get(key);
  };
  const program = ts.createProgram(fileNames, options, host);
  const found = [...errors, ...program.getOptionsDiagnostics(), ...compileFiles(program)];
  return ts.formatDiagnostics(ts.sortAndDeduplicateDiagnostics(found), {
    getCurrentDirectory: () => where,
    getCanonicalFileName: (name) => name,
    getNewLine: () => '\n',
  });
}

/** Without `skipLibCheck`, the types of the package have to be right as well. Those of other packages are theirs. */
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
    const standard = { folder: dirname(ts.getDefaultLibFilePath({})), files: new Map() };
    compilers.set(version, { ts, standard });
  }
  return compilers.get(version);
}

function onUnRecoverableConfigFileDiagnostic({ messageText }) {
  throw new Error(messageText);
}
