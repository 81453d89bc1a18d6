import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const folder = fileURLToPath(new URL('../../types/', import.meta.url));
const fixtures = readdirSync(folder).filter((name) => name.endsWith('.ts'));

/** Mistakes whose messages are looked at. It is in no file, so that the compiler does not fail on it elsewhere. */
const MISTAKES = `
import { DistributedLock } from 'nestjs-redis-lock';
export class Mistakes {
  @DistributedLock((id: string) => id)
  async parameters(_id: number): Promise<void> {}

  @DistributedLock('x')
  notAsync(): number { return 1; }
}`;

describe('the compiler', () => {
  let messagesOf: (file: string) => string[];

  beforeAll(() => {
    const { config } = ts.readConfigFile(`${folder}tsconfig.json`, ts.sys.readFile) as { config: unknown };
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
    const host = ts.createCompilerHost(options);
    const { getSourceFile, fileExists } = host;
    const isMistakes = (file: string): boolean => file === `${folder}mistakes.ts`;
    host.fileExists = (file) => isMistakes(file) || fileExists(file);
    host.getSourceFile = (file, language, ...rest) =>
      isMistakes(file) ? ts.createSourceFile(file, MISTAKES, language) : getSourceFile(file, language, ...rest);
    const files = [...fixtures, 'mistakes.ts'].map((name) => folder + name);
    const program = ts.createProgram(files, options, host);
    const globalMessages = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()];
    messagesOf = (file) => {
      const source = program.getSourceFile(folder + file);
      return [
        ...globalMessages,
        ...program.getSyntacticDiagnostics(source),
        ...program.getSemanticDiagnostics(source),
      ].map(({ messageText, start }) => {
        const line = start === undefined ? '' : source?.getLineAndCharacterOfPosition(start).line;
        return `${file}:${Number(line) + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
      });
    };
  }, 60_000);

  it.each(fixtures)('accepts what is right and refuses what is marked as wrong in test/types/%s', (fixture) => {
    expect(readFileSync(folder + fixture, 'utf8')).toContain('@ts-expect-error');
    expect(messagesOf(fixture)).toEqual([]);
  });

  it('says what is wrong with a decorated method', () => {
    const [parameters, notAsync, ...more] = messagesOf('mistakes.ts');
    expect(more).toEqual([]);
    expect(parameters).toContain('mistakes.ts:4');
    expect(parameters).toContain('The parameters of the key function must be those of the method');
    expect(notAsync).toContain('mistakes.ts:7');
    expect(notAsync).toContain("'number' is not assignable to type 'Promise<unknown>'");
  });
});
