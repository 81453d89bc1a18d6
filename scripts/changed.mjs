// Which files you have changed.
import { spawnSync } from 'node:child_process';
import { root } from './setup.mjs';

/** Those that differ from the newest commit of main in your branch, committed or not. Deleted ones are left out. */
export function changedFiles() {
  const [base = 'HEAD'] = git('merge-base', 'HEAD', 'main');
  return [...git('diff', '--name-only', '--diff-filter=d', base), ...git('ls-files', '--others', '--exclude-standard')];
}

/** The lines that Git prints. None, if it fails: in a clone there may be no main. */
function git(...args) {
  const { stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return (stdout ?? '').split('\n').filter(Boolean);
}
