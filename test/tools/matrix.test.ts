import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';

describe('npm run matrix', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'matrix-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function program(name: string, script: string): Promise<string> {
    const path = join(folder, name);
    await writeFile(path, `#!/bin/sh\n${script}\n`);
    await chmod(path, 0o755);
    return path;
  }

  /** A Node that runs no tests: they fail on some servers. It writes down what it was to run. */
  const node = () =>
    program(
      'node',
      `if [ "$1" = --version ]; then echo v99.1.0; exit; fi
echo "$REDIS_SERVER_BIN$REDIS_SERVER_IMAGE $*" >>${join(folder, 'runs')}
case "$REDIS_SERVER_BIN$REDIS_SERVER_IMAGE" in *broken*) exit 1 ;; esac`,
    );

  function matrix(...args: string[]) {
    const { status, stdout } = spawnSync(process.execPath, ['scripts/matrix.mjs', ...args], {
      cwd: root,
      encoding: 'utf8',
    });
    return { status, rows: stdout.split('\n').filter((line) => /^(passed|FAILED) /.test(line)) };
  }

  it('says for each run, and for no other, whether its tests passed', async () => {
    const server = await program('redis-server', 'echo "Redis server v=8.0.1 sha=0 bits=64"');
    const path = await node();
    const { status, rows } = matrix(server, 'broken:9', '--node', path, '--', 'test/redis/wire');
    expect(rows).toEqual([`passed  Node 99.1.0, ${server} 8.0.1`, 'FAILED  Node 99.1.0, broken:9']);
    expect(status).toBe(1);
    const runs = (await readFile(join(folder, 'runs'), 'utf8')).trim().split('\n');
    expect(runs).toEqual([server, 'broken:9'].map((each) => `${each} scripts/test.mjs test test/redis/wire`));
  });

  it('fails for a Node that is not there', () => {
    const path = join(folder, 'node');
    expect(matrix('redis:9', '--node', path)).toEqual({
      status: 1,
      rows: [`FAILED  Node of unknown version (${path}), redis:9`],
    });
  });

  it('runs nothing, and says so, without a server', () => {
    expect(matrix()).toEqual({ status: 2, rows: [] });
  });
});
