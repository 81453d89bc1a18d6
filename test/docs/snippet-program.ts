import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { type Block, blocksOf, GUIDES, ROOT } from './guides.js';

/** Names that snippets may use without an import. */
const WORLD = `
import type { RedisLockService } from 'nestjs-redis-lock';
import type { useRedis as redisOfTests } from '../../../test/support/redis/redis-server.js';

declare global {
  const useRedis: typeof redisOfTests; // docs/internals/testing.md
  const locks: RedisLockService;
  const db: { query(sql: string, values: unknown[]): Promise<{ rowCount: number }> };
  const stock: { updateOne(filter: object, update: object, options?: object): Promise<{ matchedCount: number }> };
  const productId: string;
  const count: number;
}
`;
/** The note of a block that is a file of a stack, or of test/docs/testing: `<!-- file: test/stacks/events/orders.ts -->`. */
export const FILE = 'file: ';

const COMPILER = join(ROOT, 'node_modules/typescript-native/bin/tsc');

export const snippets: readonly Block[] = GUIDES.filter((path) => path !== 'CONTRIBUTING.md')
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'ts')
  .filter(({ note }) => !note?.startsWith('driver: ')) // test/stacks/databases/drivers has those
  .filter(({ note }) => !note?.startsWith(FILE)); // tests compile and run those

const files = new Map(snippets.map((block, index) => [`snippet-${index}.ts`, block]));

const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile.bind(ts.sys));
const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);

/**
 * Compiles all snippets as one program and returns the errors, with the line of the guide. It is as strict as the
 * library's own check, and uses the compiler of `npm run typecheck`.
 *
 * @param extra further files: their names and texts
 */
export async function complaintsAbout(extra: Readonly<Record<string, string>> = {}): Promise<string[]> {
  // Below the packages of this project, and out of sight of what checks and packs its files.
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, 'snippets-'));
  try {
    const texts = {
      'package.json': '{ "type": "module" }',
      'tsconfig.json': JSON.stringify({ extends: '../../../tsconfig.json', include: ['*.ts'], exclude: [] }),
      'world.ts': WORLD,
      // A module each, so that their names do not meet.
      ...Object.fromEntries([...files].map(([name, { code }]) => [name, `${code}\nexport {};\n`])),
      ...extra,
    };
    await Promise.all(Object.entries(texts).map(([name, text]) => writeFile(join(folder, name), text)));
    // In one thread: several check much of the library each.
    const args = [COMPILER, '--noEmit', '--singleThreaded', '--pretty', 'false'];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      cwd: folder,
      // The compiler keeps nearly all that it makes: to look for what it does not need is a quarter of its work.
      env: { ...process.env, NODE_OPTIONS: '', GOGC: 'off' },
    }).catch((error: Error & { stdout: string }) => {
      // It ends by an error where it has something to say.
      if (!error.stdout) throw error;
      return error;
    });
    return complaintsIn(stdout);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Each begins in a line of its own, and the lines that explain it are indented. */
function complaintsIn(stdout: string): string[] {
  return stdout
    .trimEnd()
    .split(/\n(?! )/)
    .filter((complaint) => complaint !== '')
    .map((complaint) =>
      complaint.replace(/^(.*)\((\d+),\d+\): error TS\d+: /, (_, file: string, line: string) => {
        const [guide, begin] = (files.get(file)?.where ?? `${file}:0`).split(':');
        return `${guide}:${Number(begin) + Number(line)} `;
      }),
    );
}

/** A snippet as JavaScript, the way its reader would compile it. */
export function compileSnippet({ code }: Block): string {
  const compilerOptions = { ...options, module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  return ts.transpileModule(code, { compilerOptions }).outputText;
}
