import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findingsOf } from '../../../tools/lua/findings.mjs';

const ROOT = join(import.meta.dirname, '../../..');

interface Line {
  readonly file: string;
  readonly number: number;
  readonly text: string;
}

function piece(file: string, begin: number, ...texts: string[]): { file: string; lines: Line[] } {
  return { file, lines: texts.map((text, index) => ({ file, number: begin + index, text })) };
}

const shared = piece('include/shared.lua', 5, '', 'local function get() end', 'local function set() end', '');
const SCRIPTS = new Map([
  ['get', [shared, piece('get.lua', 10, '', 'return get(x)')]],
  ['set', [piece('set.lua', 4, 'local a = 1'), shared, piece('set.lua', 6, '', 'return set(a)')]],
]);

describe('what luacheck finds in assembled scripts', () => {
  it('is told with the file and line in which it was written', () => {
    const output =
      "/tmp/x/get.lua:6:12: (W113) accessing undefined variable 'x'\n/tmp/x/set.lua:7:1: (E011) expected 'then'\n";
    expect(findingsOf(output, SCRIPTS)).toEqual([
      "get.lua:11:12: (W113) accessing undefined variable 'x'",
      "set.lua:7:1: (E011) expected 'then'",
    ]);
  });

  it('is told once, where several scripts include it', () => {
    const output =
      "get.lua:2:7: (W431) shadowing upvalue 'a' on line 1\nset.lua:3:7: (W431) shadowing upvalue 'a' on line 9\n";
    expect(findingsOf(output, SCRIPTS)).toEqual(["include/shared.lua:6:7: (W431) shadowing upvalue 'a'"]);
  });

  it('is no unused function of an include where another script uses it', () => {
    const ofGet = "get.lua:3:16: (W211) unused function 'set'\n";
    expect(findingsOf(ofGet, SCRIPTS)).toEqual([]);
    expect(findingsOf(`${ofGet}set.lua:4:16: (W211) unused function 'set'\n`, SCRIPTS)).toEqual([
      "include/shared.lua:7:16: (W211) unused function 'set'",
    ]);
  });

  it('is what is missing at the end, too', () => {
    expect(findingsOf("get.lua:99:1: (E011) expected 'end'\n", SCRIPTS)).toEqual([
      "get.lua:11:1: (E011) expected 'end'",
    ]);
  });

  it('is refused where it is not understood, rather than dropped', () => {
    expect(() => findingsOf('Segmentation fault\n', SCRIPTS)).toThrow('Segmentation fault');
  });
});

describe('the check of the scripts', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'check-lua-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function check(CI = ''): { status: number | null; said: string } {
    const env = { PATH: folder, CI };
    const run = spawnSync(process.execPath, ['tools/lua/check.mjs'], { cwd: ROOT, env, encoding: 'utf8' });
    return { status: run.status, said: run.stdout + run.stderr };
  }

  function pretend(script: string): void {
    const file = join(folder, 'luacheck');
    writeFileSync(file, `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
  }

  it('is left out without luacheck, and says so', () => {
    expect(check()).toEqual({
      status: 0,
      said: expect.stringMatching(/SKIPPED, luacheck is not installed.*lua-check/),
    });
  });

  it('fails without luacheck where CI runs it', () => {
    expect(check('true')).toEqual({ status: 1, said: expect.stringMatching(/FAILED, luacheck is not installed/) });
  });

  it('gives luacheck every script, and its own settings', () => {
    pretend('echo "$@" >&2; exit 9');
    const { status, said } = check();
    expect(status).toBe(1);
    expect(said).toContain(`--config ${ROOT}/.luacheckrc`);
    expect(said).toMatch(/acquire\.lua .*verify\.lua/);
  });

  it('passes where luacheck finds nothing', () => {
    pretend('exit 0');
    expect(check()).toEqual({ status: 0, said: expect.stringMatching(/: 0 warnings or errors in \d+ scripts/) });
  });

  it('fails where luacheck finds something', () => {
    pretend('echo "/x/verify.lua:2:1: (W113) accessing undefined variable"; exit 1');
    expect(check()).toEqual({ status: 1, said: expect.stringMatching(/include\/clock\.lua:\d+:1: \(W113\)/) });
  });
});
