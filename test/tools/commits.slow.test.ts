import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { problemsOf } from '../../tools/commits/rules.mjs';

const BODY = '\n\nThe reply was lost after a reconnect.\n';

describe('the rules for commit messages', () => {
  it.each([
    `fix(redis): recover from NOSCRIPT inside a pipeline${BODY}`,
    `feat!: drop Node 18${BODY}`,
    `perf(core, redis): send one command less${BODY}`,
    `docs: ${'x'.repeat(66)}${BODY}`,
    'fix: a\n\nWhy it is so.\n\nSigned-off-by: A <a@b.org>\n',
  ])('accept %j', (message) => {
    expect(problemsOf(message)).toEqual([]);
  });

  it.each([
    [`docs: ${'x'.repeat(67)}${BODY}`, 'The subject has 73 characters, 72 at most.'],
    [`Recover from NOSCRIPT${BODY}`, 'The subject is not of the form "type(scope): what changes".'],
    [`fix:no space${BODY}`, 'The subject is not of the form "type(scope): what changes".'],
    [`fixed: a lost reply${BODY}`, expect.stringMatching(/^"fixed" is no type\. The types are build, /)],
    [`fix(Redis Store): a lost reply${BODY}`, '"Redis Store" is no scope: use lower-case words.'],
    [`fix(): a lost reply${BODY}`, '"" is no scope: use lower-case words.'],
    [`fix: a lost reply.${BODY}`, 'The subject ends with a full stop.'],
    ['fix: a lost reply\nafter a reconnect\n', 'The second line is not empty.'],
    ['fix: a lost reply\n', 'There is no body. It says why the change is made.'],
    ['fix: a lost reply\n\nSigned-off-by: A <a@b.org>\n', 'There is no body. It says why the change is made.'],
  ])('refuse %j', (message, problem) => {
    expect(problemsOf(message)).toEqual([problem]);
  });
});

describe('tools/commits/check.mjs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'commit-check-'));
  const identity = ['-c', 'user.name=A', '-c', 'user.email=a@b.org', '-c', 'commit.gpgsign=false'];
  const git = (...args: string[]) => execFileSync('git', [...identity, ...args], { cwd: folder, encoding: 'utf8' });
  const commit = (message: string) => git('commit', '--quiet', '--allow-empty', '--message', message);
  const check = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, 'tools/commits/check.mjs'), ...args], { cwd: folder, encoding: 'utf8' });

  beforeAll(() => {
    git('init', '--quiet', '--initial-branch=main');
    commit('The first commit is not looked at');
    git('tag', 'base');
    commit(`fix: one${BODY}`);
    git('tag', 'good');
    commit('fix: two without a body');
    commit(`three${BODY}`);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('passes where each commit of the range follows the rules', () => {
    expect(check('base..good')).toMatchObject({ status: 0, stdout: '1 commits, 0 refused\n', stderr: '' });
  });

  it('names each commit that does not, oldest first', () => {
    const { status, stdout, stderr } = check('base..main');
    expect({ status, stdout }).toEqual({ status: 1, stdout: '3 commits, 2 refused\n' });
    expect(stderr.replace(/^[0-9a-f]{7,} /gm, '')).toBe(
      `fix: two without a body
  There is no body. It says why the change is made.
three
  The subject is not of the form "type(scope): what changes".
`,
    );
  });

  it('leaves out merges, whose messages Git writes', () => {
    git('checkout', '--quiet', '-b', 'side', 'base');
    commit(`fix: side${BODY}`);
    git('merge', '--quiet', '--no-edit', 'good');
    expect(check('good..side')).toMatchObject({ status: 0, stdout: '1 commits, 0 refused\n' });
  });

  it('fails without a range, and on one that Git does not know', () => {
    expect(check().status).toBe(2);
    expect(check('base..nowhere').status).not.toBe(0);
  });
});
