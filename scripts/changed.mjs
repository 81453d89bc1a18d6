// Lists the files that you have changed.
import { spawnSync } from 'node:child_process';
import { root } from './setup.mjs';

/** The newest commit of main in your branch. Without main, as in a shallow clone, only what is not committed counts. */
const [base = 'HEAD'] = git('merge-base', 'HEAD', 'main');

/** Files that differ from it, committed or not. Deleted ones are left out. */
export function changedFiles() {
  return [...git('diff', '--name-only', '--diff-filter=d', base), ...git('ls-files', '--others', '--exclude-standard')];
}

/**
 * Rooms of lib/ that have grown since, such as `lib/kernel/lease`, with their lines then and now. A new room has grown from nothing.
 *
 * @returns {{ room: string, before: number, now: number }[]}
 */
export function grownRooms() {
  const rooms = new Map();
  for (const line of git('diff', '--numstat', '--no-renames', base, '--', 'lib', ':!*.generated.ts')) {
    const [added, deleted, file] = line.split('\t');
    const room = file.slice(0, file.lastIndexOf('/'));
    rooms.set(room, (rooms.get(room) ?? 0) + Number(added) - Number(deleted));
  }
  return [...rooms].flatMap(([room, grown]) => {
    const files = git('ls-tree', '--name-only', base, `${room}/`).filter((file) => /(?<!\.generated)\.ts$/.test(file));
    const before = files.reduce((lines, file) => lines + git('show', `${base}:${file}`).length, 0);
    return grown > 0 ? [{ room, before, now: before + grown }] : [];
  });
}

/** The lines that Git prints. None, if it fails. */
function git(...args) {
  const { stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 });
  return (stdout ?? '').split('\n').filter(Boolean);
}
