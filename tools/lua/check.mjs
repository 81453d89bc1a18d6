// Part of `npm run lint`: luacheck on the .lua files in lib/, in the form that Redis gets. Without luacheck it prints a
// note and passes; with CI=true it fails.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assembleAll, linesOf, textOf } from './assemble.mjs';
import { findingsOf } from './findings.mjs';

const root = join(import.meta.dirname, '../..');
const LIB = 'lib';

process.exitCode = check();

function check() {
  const scripts = assembleAll(join(root, LIB));
  const { error, status, stdout, stderr } = luacheck(scripts);
  if (error) {
    const isRequired = process.env.CI === 'true';
    const why = error.code === 'ENOENT' ? 'luacheck is not installed' : error.message;
    console.error(
      `Lua scripts: ${isRequired ? 'FAILED' : 'SKIPPED'}, ${why} (Debian, Ubuntu: apt-get install lua-check).`,
    );
    return isRequired ? 1 : 0;
  }
  // 0: nothing found, 1: warnings, 2: mistakes in the syntax.
  if (status === null || status > 2) {
    console.error(`Lua scripts: FAILED, luacheck itself did not run: ${stdout}${stderr}`);
    return 1;
  }
  const findings = findingsOf(stdout, scripts);
  for (const finding of findings) console.error(`${LIB}/${finding}`);
  console.log(`Lua scripts: ${findings.length} warnings or errors in ${scripts.size} scripts.`);
  return findings.length > 0 ? 1 : 0;
}

/** On the assembled scripts: only there is it known what a line may use. */
function luacheck(scripts) {
  const folder = mkdtempSync(join(tmpdir(), 'luacheck-'));
  try {
    const files = [...scripts].map(([name, pieces]) => {
      const file = join(folder, `${name}.lua`);
      writeFileSync(file, textOf(linesOf(pieces)));
      return file;
    });
    const options = [
      '--config',
      join(root, '.luacheckrc'),
      '--formatter',
      'plain',
      '--codes',
      '--no-color',
      '--no-cache',
    ];
    return spawnSync('luacheck', [...options, ...files], { encoding: 'utf8' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
