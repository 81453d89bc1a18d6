import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { changesSince, howToClaim } from '../../../scripts/selection/base.mjs';

describe('the files that have changed since everything was checked', () => {
  let cwd: string;

  const git = (...args: string[]) =>
    execFileSync(
      'git',
      ['-c', 'user.name=T', '-c', 'user.email=t@example.org', '-c', 'commit.gpgsign=false', ...args],
      {
        cwd,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    ).trim();
  const write = (file: string, text = file) => writeFileSync(join(cwd, file), text);
  const head = () => git('rev-parse', 'HEAD');
  function commit(...files: string[]) {
    for (const file of files) write(file, `${file} ${Math.random()}`);
    git('add', '--all');
    git('commit', '--quiet', '--allow-empty', '-m', 'a change');
    return head();
  }
  function claim(tree = git('rev-parse', 'HEAD^{tree}')) {
    git('commit', '--quiet', '--allow-empty', '-m', 'ci: everything was checked', '--trailer', `Checked: ${tree}`);
    return head();
  }
  const since = (landed?: string) => changesSince({ cwd, landed });

  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'selection-'));
    git('init', '--quiet', '--initial-branch=main');
    commit('a', 'b');
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  it('are unknown where no commit says so', async () => {
    expect(await since()).toEqual({ reason: 'no commit says that everything was checked', files: [] });
  });

  it('are those since the newest commit that says so', async () => {
    claim();
    commit('a');
    const base = claim();
    commit('b');
    commit('c');
    expect(await since()).toEqual({ base, files: ['b', 'c'] });
  });

  it('have the uncommitted ones among them, deleted and renamed ones, too', async () => {
    const base = claim();
    commit('c');
    unlinkSync(join(cwd, 'a'));
    git('mv', 'b', 'moved');
    write('new, and strange "ä"');
    expect(await since()).toEqual({ base, files: ['a', 'b', 'c', 'moved', 'new, and strange "ä"'] });
  });

  it('are unknown at the commit that says so, right or wrong: there everything runs', async () => {
    claim();
    const reason = 'HEAD says that everything was checked';
    expect(await since()).toEqual({ reason, files: [] });
    claim('anything');
    expect(await since()).toEqual({ reason, files: [] });
  });

  it('are not counted from a commit that says so of other files than its own', async () => {
    const base = claim();
    const checked = git('rev-parse', 'HEAD^{tree}');
    commit('a');
    claim(checked);
    commit('b');
    expect(await since()).toEqual({ base, files: ['a', 'b'] });
  });

  it('are not counted from a claim that was amended, or moved onto other work', async () => {
    const first = head();
    claim();
    write('a', 'amended');
    git('commit', '--quiet', '--all', '--amend', '--no-edit');
    commit('b');
    expect(await since()).toHaveProperty('reason');
    git('reset', '--quiet', '--hard', first);
    const claimed = claim();
    git('reset', '--quiet', '--hard', first);
    commit('b');
    git('cherry-pick', '--allow-empty', claimed);
    commit('c');
    expect(await since()).toHaveProperty('reason');
  });

  it('are not counted from words in a message that are no trailer', async () => {
    git('commit', '--quiet', '--allow-empty', '-m', `a\n\nChecked: ${git('rev-parse', 'HEAD^{tree}')}\n\nAnd more.`);
    commit('b');
    expect(await since()).toHaveProperty('reason');
  });

  it('are not counted from what the change says of itself, where it is known what had landed', async () => {
    const base = claim();
    const landed = commit('a');
    commit('b');
    claim();
    commit('c');
    expect(await since(landed)).toEqual({ base, files: ['a', 'b', 'c'] });
    git('update-ref', 'refs/remotes/origin/main', landed);
    expect(await since()).toEqual({ base, files: ['a', 'b', 'c'] });
  });

  it('are not counted from a commit of another branch', async () => {
    const first = head();
    claim();
    const other = commit('a');
    git('reset', '--quiet', '--hard', first);
    commit('b');
    expect(await since(other)).toHaveProperty('reason');
  });

  it('are counted from a tag of the nightly run', async () => {
    claim();
    const base = commit('a');
    git('tag', 'checked/2026-01-01');
    commit('b');
    expect(await since()).toEqual({ base, files: ['b'] });
    git('tag', '--delete', 'checked/2026-01-01');
    git('tag', 'checked/later');
    expect(await since(base)).toEqual({ base: expect.not.stringMatching(base), files: ['a', 'b'] });
  });

  it('are unknown in a clone without the history, and outside of any', async () => {
    claim();
    commit('a');
    const shallow = mkdtempSync(join(tmpdir(), 'selection-'));
    git('clone', '--quiet', '--depth', '1', `file://${cwd}`, shallow);
    expect(await changesSince({ cwd: shallow })).toEqual({ reason: 'the history is not here', files: [] });
    rmSync(join(shallow, '.git'), { recursive: true });
    expect(await changesSince({ cwd: shallow })).toEqual({ reason: expect.stringMatching(/^git: /), files: [] });
    rmSync(shallow, { recursive: true });
  });

  it('are counted from the commit that a run proposes, where it has found what is committed', async () => {
    const proposed = await howToClaim({ cwd });
    expect(proposed).toContain(` --trailer 'Checked: ${git('rev-parse', 'HEAD^{tree}')}'`);
    write('c');
    expect(await howToClaim({ cwd })).toBe('');
  });

  it('are unknown where what had landed is not here', async () => {
    claim();
    commit('a');
    expect(await since('0'.repeat(40))).toEqual({ reason: expect.stringMatching(/^git: /), files: [] });
  });
});
