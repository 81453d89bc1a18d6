// npm run lint   oxlint, the arrows between the rooms of lib/, the Lua scripts, and how large lib/ may be. The rules that need
//                types take ten times as long as all others: they look at what is new since they last passed here, and at what
//                imports it. Where nothing is kept of a run before, as on CI, they look at everything.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { runCommand } from './command.mjs';
import { newFiles } from './lint/new-files.mjs';
import { root } from './setup.mjs';

const KEPT = join(root, 'node_modules/.cache/oxlint/passed.json');
const CODE = ['*.ts', '*.mts', '*.mjs'];
/** A change to one of these can change what is said of any file. */
const RULES = ['.oxlintrc.json', 'tsconfig.json', 'package-lock.json'];
/** What imports so many new files is nearly everything. */
const MANY = 100;

const BIN = join(root, 'node_modules/.bin');
const env = { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH}` };

await runCommand(() => {
  const now = contents();
  const files = newFiles(kept(), now, read);
  const passed =
    run('oxlint') &&
    (files.length === 0 || run('oxlint', '--type-aware', ...(files.length > MANY ? [] : files))) &&
    run('depcruise', 'lib', '--cache', 'node_modules/.cache/dependency-cruiser') &&
    run('node', 'tools/lua/check.mjs') &&
    run('node', 'tools/budget/check.mjs');
  if (!passed) return 1;
  mkdirSync(dirname(KEPT), { recursive: true });
  writeFileSync(KEPT, JSON.stringify(now));
  return 0;
});

/** @returns {import('./lint/new-files.mjs').Contents} */
function contents() {
  const listed = ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...CODE];
  const names = execFileSync('git', listed, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
    .trim()
    .split('\n');
  const files = names.filter((name) => existsSync(join(root, name)));
  return { rules: hash(...RULES), files: Object.fromEntries(files.map((name) => [name, hash(name)])) };
}

function hash(...names) {
  const sum = createHash('sha256');
  for (const name of names) sum.update(read(name));
  return sum.digest('base64');
}

function kept() {
  return existsSync(KEPT) ? JSON.parse(readFileSync(KEPT, 'utf8')) : undefined;
}

function read(name) {
  return readFileSync(join(root, name), 'utf8');
}

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: 'inherit' });
  if (error) throw error;
  return status === 0;
}
