import { planFor } from '../../../scripts/selection/plan.mjs';
import { ALL } from '../../../scripts/selection/suites.mjs';

const BASE = '0123456789abcdef0123456789abcdef01234567';
/** How long the tests took that run. */
const TIME = expect.stringMatching(
  /^When they were last measured, these tests took [\d mins]+, one after another, and those of each change [\d mins]+\.$/,
) as string;
const plan = (...files: string[]) => planFor({ base: BASE, files });

describe('what a run does', () => {
  it('is everything, where there is no commit to go by', () => {
    const { runs, leftOut, mutants, lines } = planFor({ reason: 'the history is not here', files: [] });
    expect({ runs, leftOut, mutants }).toEqual({ runs: ALL, leftOut: [], mutants: undefined });
    expect(lines).toEqual(['Everything runs: the history is not here.', TIME]);
  });

  it('is everything, where it is asked for', () => {
    expect(planFor({ base: BASE, files: [] }, { all: true })).toEqual({
      runs: ALL,
      leftOut: [],
      mutants: undefined,
      lines: ['Everything runs: --all.', TIME],
    });
  });

  it('is nothing beside what always runs, where nothing has changed', () => {
    expect(plan().runs).toEqual([]);
    expect(plan().leftOut).toEqual(ALL);
  });

  it('is what the changed rooms can break, together', () => {
    expect(plan('lib/nest/transactions/cls.ts').runs).toEqual([
      'processes',
      'editor',
      'snippets',
      'sample app',
      'stack contexts',
      'stack databases',
      'stack types',
      'consumers',
    ]);
    expect(plan('lib/redis/health/probe.ts', 'tools/model/lock.pml', 'test/core/a.test.ts').runs).toEqual([
      'model',
      'redis faults',
      'quorum servers',
      'command line',
      'chaos storms',
      'chaos topologies',
    ]);
  });

  it('has those mutants among it that a change is like, and all of them where what tries them has changed', () => {
    expect(plan('docs/guide/cron.md').mutants).toEqual([]);
    expect(plan('lib/redis/inbox.ts').mutants).toEqual(['believes-any-message']);
    expect(plan('lib/redis/inbox.ts').runs).toContain('chaos mutants');
    expect(plan('tools/model/lock.pml').mutants).toHaveLength(32);
    expect(plan('package.json').mutants).toBeUndefined();
  });

  it('is everything, where one changed file has no line', () => {
    const { runs, lines } = plan('docs/guide/cron.md', 'package.json');
    expect(runs).toEqual(ALL);
    expect(lines).toContain('Without a line in scripts/selection/rooms.mjs, so everything runs: package.json.');
  });

  it('is said in ten lines, each of which fits on a screen', () => {
    const { lines } = plan('package.json', 'README.md', 'CHANGELOG.md', ...ALL.map((name) => `${name}/new.ts`));
    expect(lines.length).toBeLessThanOrEqual(10);
    for (const line of lines) expect(line.length).toBeLessThan(180);
  });

  it('says since when, which rooms have changed, what runs and what does not', () => {
    expect(plan('lib/redis/inbox.ts', 'CHANGELOG.md').lines).toEqual([
      'Since 0123456789ab, of which everything was checked: 2 files have changed.',
      'Rooms that can break a suite: lib/redis/inbox.ts.',
      'Rooms whose suites run for each change: CHANGELOG.md.',
      expect.stringMatching(/^Runs for this change: [\w ]+ \(\d+ s\), [\w ]+ \(\d+ s\), .*, \d+ more\.$/),
      'Mutants that are tried: believes-any-message.',
      expect.stringMatching(/^Left out, because no changed room can break it: model, contract, .*, \d+ more\.$/),
      TIME,
    ]);
    expect(plan('CHANGELOG.md').lines[0]).toMatch(/: 1 file has changed\.$/);
  });
});
