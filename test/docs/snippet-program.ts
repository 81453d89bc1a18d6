import { join } from 'node:path';
import ts from 'typescript';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { type Block, blocksOf, GUIDES, ROOT } from './guides.js';

/** What snippets may use without an import. */
const WORLD = `
import type { RedisLockService } from 'nestjs-redis-lock';

declare global {
  const locks: RedisLockService;
  const db: { query(sql: string, values: unknown[]): Promise<{ rowCount: number }> };
  const stock: { updateOne(filter: object, update: object, options?: object): Promise<{ matchedCount: number }> };
  const productId: string;
  const count: number;
}
`;
/** The note of a block that is a file of a stack, or of test/docs/testing: `<!-- file: test/stacks/events/orders.ts -->`. */
export const FILE = 'file: ';

const FOLDER = join(ROOT, 'test/docs/snippets'); // It exists in memory only.

export const snippets: readonly Block[] = GUIDES.filter((path) => path !== 'CONTRIBUTING.md')
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'ts')
  .filter(({ note }) => !note?.startsWith('driver: ')) // test/stacks/databases/drivers has those
  .filter(({ note }) => !note?.startsWith(FILE)); // tests compile and run those

const files = new Map(snippets.map((block, index) => [join(FOLDER, `snippet-${index}.ts`), block]));

const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile.bind(ts.sys));
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);

/** All snippets as one program, checked as strictly as the library itself. */
export function createSnippetProgram(extra: Record<string, string> = {}): ts.Program {
  const texts = new Map<string, string>([[join(FOLDER, 'world.ts'), WORLD]]);
  // A module each, so that their names do not meet.
  for (const [file, { code }] of files) texts.set(file, `${code}\nexport {};\n`);
  for (const [name, text] of Object.entries(extra)) texts.set(join(FOLDER, name), text);
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  host.readFile = (name) => texts.get(name) ?? readFile.call(host, name);
  host.fileExists = (name) => texts.has(name) || fileExists.call(host, name);
  host.getSourceFile = (name, languageVersion, ...rest) => {
    const text = texts.get(name);
    if (text === undefined) return getSourceFile.call(host, name, languageVersion, ...rest);
    return ts.createSourceFile(name, text, languageVersion);
  };
  return ts.createProgram([...texts.keys(), ...ENTRY_POINTS.map(({ source }) => join(ROOT, source))], options, host);
}

/** What the compiler says about the snippets, with the line of the guide. */
export function complaintsAbout(program: ts.Program): string[] {
  const sources = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(FOLDER));
  return sources
    .flatMap((source) => [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)])
    .map(({ file, start, messageText }) => {
      const { line } = file!.getLineAndCharacterOfPosition(start!);
      const [guide, begin] = (files.get(file!.fileName)?.where ?? `${file!.fileName}:0`).split(':');
      return `${guide}:${Number(begin) + line + 1} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
}

/** A snippet as JavaScript, the way its reader would compile it. */
export function compileSnippet({ code }: Block): string {
  const compilerOptions = { ...options, module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(code, { compilerOptions }).outputText;
}
