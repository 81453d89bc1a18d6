import { planFor } from '../../../scripts/selection/plan.mjs';
import { ALL } from '../../../scripts/selection/suites.mjs';

const BASE = '0123456789abcdef0123456789abcdef01234567';
const plan = (...files: string[]) => planFor({ base: BASE, files });

describe('what a run does', () => {
  it('is everything, where there is no commit to go by', () => {
    const { runs, leftOut, lines } = planFor({ reason: 'the history is not here', files: [] });
    expect(runs).toEqual(ALL);
    expect(leftOut).toEqual([]);
    expect(lines).toEqual(['Everything runs: the history is not here.']);
  });

  it('is everything, where it is asked for', () => {
    expect(planFor({ base: BASE, files: [] }, { all: true })).toEqual({
      runs: ALL,
      leftOut: [],
      lines: ['Everything runs: --all.'],
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
      'contract',
      'servers',
      'chaos storms',
      'chaos topologies',
    ]);
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
    expect(plan('lib/core/explain/explainer.ts', 'CHANGELOG.md').lines).toEqual([
      'Since 0123456789ab, of which everything was checked: 2 files have changed.',
      'Rooms that can break a suite: lib/core/explain/.',
      'Rooms whose suites run for each change: CHANGELOG.md.',
      'Runs for this change: contract, sample app.',
      expect.stringMatching(/^Left out, because no changed room can break it: model, servers, .*, \d+ more\.$/),
    ]);
  });
});
