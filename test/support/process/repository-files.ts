import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../scripts/setup.mjs';

/**
 * The files of the repository, including uncommitted ones.
 *
 * @param patterns of Git; without one, all files
 */
export function repositoryFiles(...patterns: string[]): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns];
  const listed = execFileSync('git', args, { cwd: root, encoding: 'utf8' });
  return listed
    .trim()
    .split('\n')
    .filter((path) => existsSync(join(root, path)));
}
