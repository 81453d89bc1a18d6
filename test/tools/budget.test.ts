import { findings, fitted } from '../../tools/budget/compare.mjs';
import { measure } from '../../tools/budget/measure.mjs';

const lines = (count: number): string => 'const a = 1;\n'.repeat(count);

/** What is found after a change to a lib that fitted its budgets. */
function foundAfter(change: Record<string, string>): string[] {
  const before = {
    'index.ts': lines(20),
    'core/jobs/job.ts': `export interface JobNote {}\n${lines(99)}`,
    'core/jobs/ticks.ts': `export class Ticks {}\n${lines(99)}`,
    'core/lease/lease.ts': `export type Lease = string;\n${lines(299)}`,
    'redis/scripts.generated.ts': lines(1_000),
  };
  const budgets = fitted(measure(new Map(Object.entries(before))));
  expect(budgets).toEqual({
    rooms: { '.': [1, 50], 'core/jobs': [2, 200], 'core/lease': [1, 300] },
    jobTypes: ['JobNote', 'Ticks'],
  });
  return findings(
    measure(new Map(Object.entries({ ...before, ...change }).filter(([, text]) => text !== ''))),
    budgets,
  );
}

describe('the budgets of lib/', () => {
  it('are kept by what fits them', () => {
    expect(foundAfter({})).toEqual([]);
    expect(foundAfter({ 'index.ts': lines(50), 'core/lease/lease.ts': lines(200) })).toEqual([]);
  });

  it.each<[string, Record<string, string>, string]>([
    [
      'a room with more lines',
      { 'core/lease/lease.ts': lines(301) },
      'lib/core/lease has 301 lines; its budget is 300. If it must grow: "core/lease": [1, 350].',
    ],
    [
      'a room with more files',
      { 'core/lease/more.ts': lines(1) },
      'lib/core/lease has 2 files; its budget is 1. If it must grow: "core/lease": [2, 350].',
    ],
    ['a new room', { 'cli/main.ts': lines(120) }, 'lib/cli has no budget. Add "cli": [1, 150].'],
    [
      'a room with fewer lines',
      { 'core/lease/lease.ts': lines(150) },
      'lib/core/lease has shrunk. Lower its budget: "core/lease": [1, 150].',
    ],
    ['a room that is gone', { 'core/lease/lease.ts': '' }, 'lib/core/lease has no files any more. Remove its budget.'],
    [
      'another type of a job',
      { 'index.ts': 'export interface OwedRun {}\nexport class Runner {}\nexport const JOB_RUN = 1;\n' },
      'OwedRun is one more type of a job. Use one that is there, or add it to "jobTypes".',
    ],
    [
      'a type of a job that is gone',
      { 'core/jobs/ticks.ts': lines(100) },
      'Ticks is no exported type any more. Remove it from "jobTypes".',
    ],
    [
      'a name with two meanings',
      { 'index.ts': 'export abstract class Lease {}\n' },
      'Lease is exported by lib/index.ts and lib/core/lease/lease.ts. Rename one of them, or make them one.',
    ],
  ])('are missed by %s', (_what, change, finding) => {
    expect(foundAfter(change)).toEqual([finding]);
  });

  it('do not mind what a file has for itself, a name that it exports as value and type, or one that it passes on', () => {
    const text =
      "interface Lease {}\nexport type Mode = 'a';\nexport const Mode = 'a';\nexport { type JobNote } from './job.js';\n";
    expect(foundAfter({ 'index.ts': text })).toEqual([]);
  });
});
