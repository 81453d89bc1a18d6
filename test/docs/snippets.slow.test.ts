import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { useRedis } from '../support/redis/redis-server.js';
import { type Block, blocksOf, GUIDES, readGuide, ROOT } from './guides.js';
import { compileSnippet, complaintsAbout, FILE, snippets } from './snippet-program.js';

/**
 * `<!-- run -->` runs the snippet after it. `<!-- run: ./programs/name.ts -->` starts the AppModule that the snippet exports,
 * then runs that file, see SnippetWorld. A short program may stand there itself: `<!-- run: code -->`.
 */
const runnable = snippets.filter(({ note }) => /^run\b/.test(note ?? ''));

const programOf = ({ note }: Block): string => note!.replace(/^run:? ?/, '');
const isFile = (program: string): boolean => program.endsWith('.ts');

/** The URL of "your Redis" in the guides. */
const REDIS_IN_GUIDES = 'redis://localhost:6379';

describe('the snippets of the guides', () => {
  // One program for both: it is the whole of lib, too.
  let complaints: readonly string[];
  const isMistake = (complaint: string): boolean => /^(?:typo|type)\.ts:/.test(complaint);

  beforeAll(async () => {
    complaints = await complaintsAbout({
      'typo.ts': `import { RedisLockModul } from 'nestjs-redis-lock';\nexport const x = RedisLockModul;`,
      'type.ts': `await locks.acquire('x', { leaseMs: '30s' });\nexport {};`,
    });
  }, 120_000);

  it('compile', () => {
    expect(complaints.filter((complaint) => !isMistake(complaint))).toEqual([]);
  });

  it('would not compile with a mistake in them', () => {
    expect(complaints.filter(isMistake)).toEqual([
      expect.stringMatching(/type\.ts:1 Type 'string' is not assignable/),
      expect.stringMatching(/typo\.ts:1 .*no exported member named 'RedisLockModul'/),
    ]);
  });

  it('have their longer programs in files, and each of these files is run', () => {
    const programs = runnable.map((block) => ({ program: programOf(block), guide: block.where.split(':')[0]! }));
    expect(programs.filter(({ program }) => program.length > 100)).toEqual([]);
    const run = programs
      .filter(({ program }) => isFile(program))
      .map(({ program, guide }) => join(dirname(guide), program));
    const there = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => basename(dirname(name)) === 'programs')
      .map((name) => join('docs', name));
    expect(run.toSorted()).toEqual(there.toSorted());
  });

  it('are a part of the test that they name', () => {
    const tested = snippets.filter(({ note }) => note?.startsWith('test: '));
    expect(tested.length).toBeGreaterThan(0);
    // The lines of a page are shorter, so they may end elsewhere.
    const bare = (text: string): string => text.replace(/\s+/g, '').replace(/,([)\]}])/g, '$1');
    for (const { note, code } of tested) {
      const withoutImports = code.replace(/^(?:import [^]*?;\n)+\n/, '');
      expect(bare(readGuide(note!.replace('test: ', '')))).toContain(bare(withoutImports));
    }
  });

  it('are the file that they name, which tests compile and run', () => {
    const blocks = GUIDES.flatMap(blocksOf).filter(({ note }) => note?.startsWith(FILE));
    for (const { where, note, code } of blocks) {
      const file = note!.slice(FILE.length);
      expect(file).toMatch(/^test\/(?:stacks|docs\/testing|features)\//);
      expect({ where, code: `${code}\n` }).toEqual({ where, code: readGuide(file) });
    }
  });

  it('show every test of test/docs/testing, which test/package runs in the test runners of readers', () => {
    const shown = GUIDES.flatMap(blocksOf).map(({ note }) => note);
    const there = readdirSync(join(ROOT, 'test/docs/testing')).map((name) => `${FILE}test/docs/testing/${name}`);
    expect(there.filter((note) => !shown.includes(note))).toEqual([]);
  });

  describe('that run', () => {
    const redis = useRedis({ args: ['--databases', '100'] });
    let results: Map<string, RunResult>;
    let exitCode: number | null;

    beforeAll(async () => {
      ({ results, exitCode } = await runSnippets(runnable, redis().url));
    }, 300_000);

    it.each(runnable.map((block) => [block.where, block] as const))('%s does what it says', (where, block) => {
      const { error, output } = results.get(where) ?? { error: 'The process ended before it', output: [] };
      expect(error).toBeUndefined();
      expect(output).toEqual(promisedOutput(block));
    });

    it('leave nothing behind that keeps the process alive', () => {
      expect(exitCode).toBe(0);
    });
  });
});

interface RunResult {
  readonly where: string;
  readonly output: readonly string[];
  readonly error?: string;
}

/** `console.log(...); // this` promises an output. The call may be on several lines, with the comment below it. */
function promisedOutput({ code }: Block): string[] {
  const promises = code.matchAll(/console\.log\((?:.*|\n(?:.*\n)*? *)\);(?: |\n *)\/\/ (.*)$/gm);
  return [...promises].map((match) => match[1]!);
}

/** Each snippet in a database of its own, all in one process. */
async function runSnippets(
  blocks: readonly Block[],
  redisUrl: string,
): Promise<{ results: Map<string, RunResult>; exitCode: number | null }> {
  const folder = await mkdtemp(join(tmpdir(), 'snippets-'));
  try {
    const plan = await Promise.all(
      blocks.map(async (block, index) => {
        const ownUrl = `${redisUrl}/${index + 1}`;
        const file = join(folder, `snippet-${index}.mjs`);
        await writeFile(file, compileSnippet(block).replaceAll(REDIS_IN_GUIDES, ownUrl));
        const program = programOf(block);
        let after = join(ROOT, dirname(block.where), program);
        if (!isFile(program)) {
          after = join(folder, `after-${index}.mjs`);
          await writeFile(
            after,
            `export default async ({ app, url, provider, assert, RedisLockService }) => {${program}\n};`,
          );
        }
        return {
          where: block.where,
          file: pathToFileURL(file).href,
          redisUrl: ownUrl,
          after: pathToFileURL(after).href,
        };
      }),
    );
    await writeFile(join(folder, 'plan.json'), JSON.stringify(plan));
    const loaders = ['../support/process/typescript-loader.mjs', './snippet-loader.mjs'];
    const child = fork(new URL('snippet-runner.mjs', import.meta.url), [join(folder, 'plan.json')], {
      execArgv: loaders.flatMap((loader) => ['--import', new URL(loader, import.meta.url).href]),
      // REDIS_URL is what some snippets read: it is not to be the developer's own Redis.
      env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: `${redisUrl}/99` },
    });
    const results = new Map<string, RunResult>();
    child.on('message', (result: RunResult) => results.set(result.where, result));
    const tooLate = setTimeout(() => child.kill('SIGKILL'), 240_000);
    const [exitCode] = (await once(child, 'exit')) as [number | null];
    clearTimeout(tooLate);
    return { results, exitCode };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
