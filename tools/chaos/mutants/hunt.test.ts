import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findImpossible } from '../../../test/support/history/outside-checker.js';
import { huntMutants, type HuntResult } from './hunt.js';
import { huntTable } from './hunt-table.js';
import { LOCK_MUTANTS } from './lock-mutants.mjs';
import { isPlayable } from './scenarios.js';

/** Longer than the hunt takes on a machine that does much else. */
const HUNT_MS = 500_000;

const MUTANTS = LOCK_MUTANTS.filter(({ scenario }) => isPlayable(scenario));
/** The library passes the scenarios in which mutants fail. */
const SCENARIOS = [...new Set(MUTANTS.map(({ scenario }) => scenario))];

/** An outside checker knows these rules alone. */
const OF_LOCKS = ['exclusion', 'permits', 'tokens'];

const histories = mkdtempSync(join(tmpdir(), 'lock-histories-'));
const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
let results: readonly HuntResult[] = [];

beforeAll(async () => {
  results = await huntMutants({ seed, only: [...MUTANTS.map(({ name }) => name), ...SCENARIOS], histories });
  process.stdout.write(`The hunt with CHAOS_SEED=${seed}\n${huntTable(results)}\n`);
}, HUNT_MS);
afterAll(() => rmSync(histories, { recursive: true }));

/** The findings of an outside checker in the file of a mutant, or of a scenario without one. */
function seenOutside(mutant: string | null, scenario: string): string[] {
  const { historyPath } = results.find((each) => each.mutant === mutant && each.scenario === scenario)!;
  return findImpossible(readFileSync(historyPath!, 'utf8'));
}

describe('a deliberately broken variant of the library', () => {
  it.each(MUTANTS)('$name is caught: $what', ({ name, caughtBy }) => {
    const { caughtBy: found } = results.find(({ mutant }) => mutant === name)!;
    expect(caughtBy).toEqual(expect.arrayContaining([...found]));
    expect(found).not.toEqual([]);
  });

  it.each(MUTANTS.filter(({ caughtBy }) => caughtBy.every((rule) => OF_LOCKS.includes(rule))))(
    '$name is caught by an outside checker of its history',
    ({ name, scenario }) => {
      expect(seenOutside(name, scenario)).not.toEqual([]);
    },
  );
});

describe('the library itself, in the same world', () => {
  it.each(SCENARIOS)('%s breaks no rule', (name) => {
    const { caughtBy, what } = results.find(({ mutant, scenario }) => mutant === null && scenario === name)!;
    expect({ caughtBy, what }).toEqual({ caughtBy: [], what: undefined });
  });

  it.each(SCENARIOS)('%s leaves a history in which an outside checker finds nothing', (name) => {
    expect(seenOutside(null, name)).toEqual([]);
  });
});
