// Since which commit a change counts, and which files it changes.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { root } from '../setup.mjs';

/**
 * A commit of which everything was checked is one that
 * - has the trailer `Checked: <tree>`, with the name that Git has for its own files (`.ci/run --all` prints it). With other files it
 *   is void: after an amend, a rebase onto other work, a conflict. It says nothing of the commits before it, and needs not to: each
 *   file is as it was when it was checked;
 * - or a tag `checked/...`, which the nightly workflow sets. A change cannot bring a tag along.
 *
 * A change is never believed about itself: of what has not landed yet, nothing counts, nor does it of HEAD, where everything runs. So
 * a wrong claim is met by the run that lets it land.
 */
export const CLAIM = 'Checked';
const TAGS = 'checked/*';

/**
 * @typedef {object} Changes
 * @property {string} [base] the newest commit of which everything was checked
 * @property {string} [reason] why there is none to go by
 * @property {readonly string[]} files that are not as they were there
 */

/**
 * @param {object} [options]
 * @param {string} [options.cwd]
 * @param {string} [options.landed] the commit that the change is made to. By default that of `origin/main`, if HEAD is another
 * @returns {Promise<Changes>}
 */
export async function changesSince({ cwd = root, landed } = {}) {
  const git = gitIn(cwd);
  const nothing = (reason) => ({ reason, files: [] });

  try {
    if ((await git('rev-parse', '--is-shallow-repository'))[0] === 'true') return nothing('the history is not here');
    const [head] = await git('rev-parse', 'HEAD');
    if (await claims(git, head)) return nothing('HEAD says that everything was checked');
    const base = await newestChecked(git, head, await landedIn(git, head, landed));
    if (base === undefined) return nothing('no commit says that everything was checked');
    const changed = await git('diff', '--name-only', '--no-renames', '-z', base, '--');
    const added = await git('ls-files', '--others', '--exclude-standard', '-z');
    return { base, files: [...new Set([...changed, ...added])] };
  } catch (error) {
    return nothing(`git: ${error.message.split('\n')[0]}`);
  }
}

/**
 * What to do where everything has passed.
 *
 * @param {object} [options]
 * @param {string} [options.cwd]
 * @returns {Promise<string>} nothing, where it has not passed as it is committed
 */
export async function howToClaim({ cwd = root } = {}) {
  const git = gitIn(cwd);
  if ((await git('status', '--porcelain')).length > 0) return '';
  const [tree] = await git('rev-parse', 'HEAD^{tree}');
  return [
    'Everything has passed. Runs of later changes count from here after',
    `  git commit --allow-empty -m 'ci: everything was checked' -m 'Later runs count from here.' --trailer '${CLAIM}: ${tree}'`,
  ].join('\n');
}

/** Runs Git. @returns lines, or what stands between zeros */
function gitIn(cwd) {
  return async (...args) => {
    const { stdout } = await promisify(execFile)('git', args, { cwd, maxBuffer: 1 << 26 });
    return stdout.split(/[\0\n]/).filter(Boolean);
  };
}

/** Whether the commit claims anything, rightly or not. */
async function claims(git, commit) {
  return (await git('log', '-1', trailerFormat(''), commit)).some((line) => line.trim() !== '');
}

function trailerFormat(before) {
  return `--format=${before}%(trailers:key=${CLAIM},valueonly,separator=%x2C)`;
}

/** What had landed before this change. */
async function landedIn(git, head, landed) {
  if (landed) return landed;
  const upstream = await git('rev-parse', '--verify', '--quiet', 'origin/main').catch(() => []);
  return upstream.length === 0 || upstream[0] === head ? head : upstream[0];
}

/** Of those that have landed and are behind HEAD: the one with the fewest commits to HEAD. */
async function newestChecked(git, head, landed) {
  const behind = (await git('merge-base', head, landed))[0];
  const lines = await git('log', `--grep=^${CLAIM}: `, trailerFormat('%H %T '), behind);
  const claimed = lines.map((line) => line.split(' ')).filter(([, tree, claim]) => claim === tree);
  const tagged = await git('for-each-ref', `refs/tags/${TAGS}`, '--merged', behind, '--format=%(objectname)');
  const commits = [...claimed.map(([commit]) => commit), ...tagged];
  const distances = await Promise.all(
    commits.map(async (commit) => Number((await git('rev-list', '--count', `${commit}..${head}`))[0])),
  );
  return commits[distances.indexOf(Math.min(...distances))];
}
