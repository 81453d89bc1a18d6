import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { blocksOf, ROOT } from '../../../docs/guides.js';
import { type SqlServer, startMariadb, startPostgres } from '../../../support/sql/sql-server.js';

const FOLDER = join(ROOT, 'test/stacks/databases');
const run = promisify(execFile);

const PREFIX = 'driver: ';
const snippets = new Map(
  blocksOf('docs/guide/fencing-drivers.md').flatMap(({ note, code }) =>
    note?.startsWith(PREFIX) ? [[note.slice(PREFIX.length), code] as const] : [],
  ),
);
/** The same as in docs/guide/fencing.md. */
const TABLES = [
  'CREATE TABLE stock (id VARCHAR(64) PRIMARY KEY, count INTEGER NOT NULL, fencing_token BIGINT NOT NULL DEFAULT 0)',
  'CREATE TABLE closings (token BIGINT NOT NULL)',
];
/** Of StaleFencingTokenError, and of the tokens in run-driver.mjs. */
const stale = (token: number, newest: number) => `stale: ${token} after ${newest}`;

/** The results in the table of the page, first with a token that is not stale, then with a stale one. */
const CLAIMS: Record<string, object> = {
  pg: { query: [1, 0], insert: [1, 0], type: 'string' },
  typeorm: {
    update: [1, 0],
    query: [
      [[], 1],
      [[], 0],
    ],
    insert: [[], []],
    returning: [[{ id: 'a' }], []],
    orUpdate: [[{ id: 'a' }], []],
    type: 'string',
  },
  prisma: {
    executeRaw: [1, 0],
    update: [{ id: 'a', count: 1, fencingToken: `${2 ** 52 + 2}n` }, 'P2025'],
    returning: [[{ id: 'a' }], []],
    asBigInt: [1, 0],
    type: 'bigint',
  },
  'mikro-orm': { run: [1, 0], all: [[], []], type: 'bigint' },
  mysql2: {
    first: [
      { affectedRows: 1, changedRows: 1 },
      { affectedRows: 0, changedRows: 0 },
    ],
    again: { affectedRows: 1, changedRows: 0 },
    withoutFlag: { affectedRows: 0, changedRows: 0 },
    type: 'number',
  },
};

describe('docs/guide/fencing-drivers.md', () => {
  const compiled = mkdtempSync(join(tmpdir(), 'drivers-'));
  const servers: Record<string, SqlServer> = {};

  beforeAll(async () => {
    symlinkSync(join(FOLDER, 'node_modules'), join(compiled, 'node_modules'));
    writeFileSync(join(compiled, 'package.json'), '{ "type": "module" }');
    for (const [name, code] of snippets) {
      if (name !== 'prisma schema') writeFileSync(join(compiled, `${name}.ts`), code);
    }
    await generatePrismaClient(compiled, snippets.get('prisma schema')!);
    servers.postgres = await startPostgres();
    servers.mariadb = await startMariadb();
  }, 240_000);

  afterAll(async () => {
    for (const server of Object.values(servers)) await server.stop();
    rmSync(compiled, { recursive: true, force: true });
  }, 30_000);

  it('has a snippet for each driver', () => {
    expect([...snippets.keys()]).toEqual(['pg', 'typeorm', 'prisma schema', 'prisma', 'mikro-orm', 'mysql2']);
  });

  it('has snippets that compile, as strictly as the library', () => {
    expect(compile(compiled)).toEqual([]);
  }, 120_000);

  describe.each(Object.keys(CLAIMS))('%s', (driver) => {
    let outcomes: Record<string, unknown>;

    beforeAll(async () => {
      const url = (driver === 'mysql2' ? servers.mariadb : servers.postgres)!.url;
      const program = join(import.meta.dirname, 'run-driver.mjs');
      const env = { ...process.env, NODE_OPTIONS: '', TABLES: JSON.stringify(TABLES) };
      const { stdout } = await run(process.execPath, [program, driver, url, compiled], { env, timeout: 60_000 });
      outcomes = JSON.parse(stdout) as Record<string, unknown>;
    }, 90_000);

    it('a stale token writes nothing, and save() says so; the same token may write the same again', () => {
      expect(outcomes.save).toEqual([true, false, true, true]);
      expect(outcomes.stored).toEqual([[4, 3]]);
      expect(outcomes.noRow).toBe(false);
    });

    it('read() returns what is there, and nothing to a stale token', () => {
      expect(outcomes.read).toEqual([7, 'stale', 7, 'stale']);
    });

    it('closeBooks() leaves nothing of a transaction that the fence refused', () => {
      expect(outcomes.books).toEqual(['closed', stale(1, 2), 'closed', 'closed', stale(2, 3)]);
      expect(outcomes.closings).toEqual([2, 2, 3]);
    });

    it('each of them waits for the transaction of a newer holder, and is then refused', () => {
      expect(outcomes.meetings).toEqual([false, 'stale', stale(2, 3)]);
    });

    it('says what the table of the page says', () => {
      expect(outcomes.claims).toEqual(CLAIMS[driver]);
    });
  });
});

/**
 * Prisma 7 needs no engine for this. Its program would download one all the same, from a host of its own, unless there is a file
 * already: it is not started.
 */
async function generatePrismaClient(folder: string, model: string): Promise<void> {
  const schema = join(folder, 'schema.prisma');
  const generator = `provider = "prisma-client"\n output = "./generated/prisma"\n importFileExtension = "js"`;
  writeFileSync(
    schema,
    `generator client {\n ${generator}\n}\ndatasource db {\n provider = "postgresql"\n}\n${model}\n`,
  );
  const env = {
    ...process.env,
    NODE_OPTIONS: '',
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
    CHECKPOINT_DISABLE: '1',
  };
  const program = join(FOLDER, 'node_modules/prisma/build/index.js');
  await run(process.execPath, [program, 'generate', '--schema', schema], { cwd: folder, env, timeout: 60_000 });
}

/** Compiles all files of the folder, and returns what the compiler says. */
function compile(folder: string): string[] {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile.bind(ts.sys));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const files = [...snippets.keys()]
    .filter((name) => name !== 'prisma schema')
    .map((name) => join(folder, `${name}.ts`));
  const program = ts.createProgram(files, {
    ...options,
    types: [],
    noEmit: false,
    paths: {},
    rootDir: folder,
    outDir: folder,
  });
  program.emit();
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    const text = ts.flattenDiagnosticMessageText(messageText, '\n');
    return file ? `${file.fileName.replace(folder, '')}: ${text}` : text;
  });
}
