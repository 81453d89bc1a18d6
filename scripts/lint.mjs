// npm run lint   oxlint, the arrows between the rooms of lib/, and the Lua scripts. The rules that need
//                types take ten times as long as all others: they look at what is new since they last passed here, and at what
//                imports it. Where nothing is kept of a run before, as on CI, they look at everything.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { runCommand } from './command.mjs';
import { newFiles } from './lint/new-files.mjs';
import { Passed } from './lint/passed.mjs';
import { root } from './setup.mjs';

const CODE = ['*.ts', '*.mts', '*.mjs'];
/** A change to one of these can change what is said of any file. */
const RULES = ['.oxlintrc.json', 'tsconfig.json', 'package-lock.json'];
/** What imports so many new files is nearly everything. */
const MANY = 100;

const BIN = join(root, 'node_modules/.bin');
const env = { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH}` };

await runCommand(() => {
  const before = new Passed('oxlint', { rules: RULES, files: CODE });
  const files = newFiles(before.kept, before.now, read);
  // With the rules that need types, all others run as well.
  const linted =
    files.length > MANY
      ? run('oxlint', '--type-aware')
      : run('oxlint') && (files.length === 0 || run('oxlint', '--type-aware', ...files));
  const passed =
    linted &&
    run('depcruise', 'lib', '--cache', 'node_modules/.cache/dependency-cruiser') &&
    run('node', 'tools/lua/check.mjs');
  if (!passed) return 1;
  before.keep();
  return 0;
});

function read(name) {
  return readFileSync(join(root, name), 'utf8');
}

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: 'inherit' });
  if (error) throw error;
  return status === 0;
}
