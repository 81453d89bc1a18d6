import ts from 'typescript';
import { fileURLToPath } from 'node:url';

/** The folder whose files see the package as an application does. */
export const TYPES_FOLDER = fileURLToPath(new URL('../../types/', import.meta.url));

/** One answer of the compiler. */
export interface Answer {
  /** The first word of what it points to. Empty for an answer about no file. */
  readonly at: string;
  /** The line of the file, from 1. */
  readonly line: number;
  /** Its text, with the lines that explain it. */
  readonly text: string;
}

/** The hover of a word in an editor. */
export interface Hover {
  readonly signature: string;
  readonly text: string;
  readonly tags: Readonly<Record<string, string>>;
}

/** The compiler as an editor asks it, with all files in one program: to read and check the library takes longer than all of them. */
export interface Editor {
  /** Adds a file of {@link TYPES_FOLDER}: of the disk, or with a text that nothing else compiles. All come before the first question. */
  open(file: string, text?: string): void;
  answersTo(file: string): Answer[];
  hoverAt(file: string, position: number): Hover;
}

export function startEditor(): Editor {
  const { config } = ts.readConfigFile(`${TYPES_FOLDER}tsconfig.json`, ts.sys.readFile) as { config: unknown };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, TYPES_FOLDER);
  const texts = new Map<string, string | undefined>();
  const textOf = (path: string): string | undefined => texts.get(path) ?? ts.sys.readFile(path);
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [...texts.keys()],
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const text = textOf(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => TYPES_FOLDER,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => texts.has(path) || ts.sys.fileExists(path),
    readFile: textOf,
    readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
    realpath: ts.sys.realpath,
  });
  return {
    open(file, text) {
      texts.set(TYPES_FOLDER + file, text);
    },
    answersTo(file) {
      const path = TYPES_FOLDER + file;
      const source = service.getProgram()!.getSourceFile(path)!;
      const ofAll = service.getCompilerOptionsDiagnostics();
      const own = [...service.getSyntacticDiagnostics(path), ...service.getSemanticDiagnostics(path)];
      return [...ofAll, ...own].map(({ messageText, start }) => ({
        at: start === undefined ? '' : /\w*/.exec(source.text.slice(start))![0],
        line: start === undefined ? 0 : source.getLineAndCharacterOfPosition(start).line + 1,
        text: ts.flattenDiagnosticMessageText(messageText, '\n'),
      }));
    },
    hoverAt(file, position) {
      const info = service.getQuickInfoAtPosition(TYPES_FOLDER + file, position)!;
      const tags = (info.tags ?? []).map(({ name, text: parts }) => [name, ts.displayPartsToString(parts)] as const);
      return {
        signature: ts.displayPartsToString(info.displayParts),
        text: ts.displayPartsToString(info.documentation),
        tags: Object.fromEntries(tags),
      };
    },
  };
}
