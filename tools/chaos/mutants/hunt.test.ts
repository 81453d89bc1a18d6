import { randomInt } from 'node:crypto';
import { huntMutants, type HuntResult } from './hunt.js';
import { huntTable } from './hunt-table.js';
import { LOCK_MUTANTS } from './lock-mutants.mjs';
import { isPlayable } from './scenarios.js';

/** Longer than the hunt takes on a machine that does much else. */
const HUNT_MS = 500_000;

const MUTANTS = LOCK_MUTANTS.filter(({ scenario }) => isPlayable(scenario));
/** The library passes the scenarios in which mutants fail. */
const SCENARIOS = [...new Set(MUTANTS.map(({ scenario }) => scenario))];

const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31));
let results: readonly HuntResult[] = [];

beforeAll(async () => {
  results = await huntMutants({ seed, only: [...MUTANTS.map(({ name }) => name), ...SCENARIOS] });
  process.stdout.write(`The hunt with CHAOS_SEED=${seed}\n${huntTable(results)}\n`);
}, HUNT_MS);

describe('a deliberately broken variant of the library', () => {
  it.each(MUTANTS)('$name is caught: $what', ({ name, caughtBy }) => {
    const { caughtBy: found } = results.find(({ mutant }) => mutant === name)!;
    expect(caughtBy).toEqual(expect.arrayContaining([...found]));
    expect(found).not.toEqual([]);
  });
});

describe('the library itself, in the same world', () => {
  it.each(SCENARIOS)('%s breaks no rule', (name) => {
    const { caughtBy, what } = results.find(({ mutant, scenario }) => mutant === null && scenario === name)!;
    expect({ caughtBy, what }).toEqual({ caughtBy: [], what: undefined });
  });
});
