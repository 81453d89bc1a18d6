// npm run lint                 oxlint, the arrows between the rooms of lib/, and the Lua scripts
// npm run lint -- --changed    the rules that need types only for the files that you have changed: they take ten times as long
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { changedFiles } from './changed.mjs';
import { runCommand } from './command.mjs';
import { root } from './setup.mjs';

const env = { ...process.env, PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}` };

await runCommand(() => {
  const passed = [
    process.argv.includes('--changed') ? lintChanged() : run('oxlint', '--type-aware'),
    run('depcruise', 'lib', '--cache', 'node_modules/.cache/dependency-cruiser'),
    run('node', 'tools/lua/check.mjs'),
  ];
  return passed.includes(false) ? 1 : 0;
});

function lintChanged() {
  const files = changedFiles().filter((file) => /\.m?[jt]s$/.test(file));
  // Some files are linted in no case, such as the projects of test/package.
  const typeAware = ['--type-aware', '--no-error-on-unmatched-pattern'];
  return run('oxlint') && (files.length === 0 || run('oxlint', ...typeAware, ...files));
}

function run(command, ...args) {
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: 'inherit' });
  if (error) throw error;
  return status === 0;
}
