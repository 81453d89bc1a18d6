import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The folder whose files see the package as an application does. */
export const TYPES_FOLDER = fileURLToPath(new URL('../../types/', import.meta.url));

/** One answer of the compiler. */
export interface Answer {
  /** The first word of what it points to. Empty for an answer about no file. */
  readonly at: string;
  /** The line of the file, from 1. */
  readonly line: number;
  /** What it says, with the lines that explain it. */
  readonly text: string;
}

/**
 * Compiles files of {@link TYPES_FOLDER} in one program, and returns what the compiler says of each.
 *
 * @param files their names
 * @param inMemory texts of files that are on no disk, so that nothing else compiles them
 */
export function compile(
  files: readonly string[],
  inMemory: ReadonlyMap<string, string> = new Map(),
): (file: string) => Answer[] {
  const { config } = ts.readConfigFile(`${TYPES_FOLDER}tsconfig.json`, ts.sys.readFile) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, TYPES_FOLDER);
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  const textOf = (path: string): string | undefined =>
    path.startsWith(TYPES_FOLDER) ? inMemory.get(path.slice(TYPES_FOLDER.length)) : undefined;
  host.fileExists = (path) => textOf(path) !== undefined || fileExists(path);
  host.getSourceFile = (path, language, ...rest) => {
    const text = textOf(path);
    return text === undefined ? getSourceFile(path, language, ...rest) : ts.createSourceFile(path, text, language);
  };
  const paths = [...files, ...inMemory.keys()].map((name) => TYPES_FOLDER + name);
  const program = ts.createProgram(paths, options, host);
  const globalAnswers = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()];
  return (file) => {
    const source = program.getSourceFile(TYPES_FOLDER + file)!;
    const own = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return [...globalAnswers, ...own].map(({ messageText, start }) => ({
      at: start === undefined ? '' : /\w*/.exec(source.text.slice(start))![0],
      line: start === undefined ? 0 : source.getLineAndCharacterOfPosition(start).line + 1,
      text: ts.flattenDiagnosticMessageText(messageText, '\n'),
    }));
  };
}
