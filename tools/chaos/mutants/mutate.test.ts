import { readFileSync } from 'node:fs';
import { workerProgram } from '../world/worker-process.js';
import { MUTANTS } from './definitions.mjs';
import { type Mutant, mutate } from './mutate.mjs';
import { replacedBy } from './replaced-by.js';

const mutant: Mutant = { name: 'm', what: 'is wrong', file: 'a.js', find: 'if (ok)', replace: 'if ($&)' };

describe('the text of a mutant', () => {
  it('differs in what was to be found, and in nothing else', () => {
    expect(mutate('a; if (ok) b;', mutant)).toBe('a; if ($&) b;');
  });

  it('differs in each place, where it is said in how many it has to be found', () => {
    expect(mutate('if (ok) a; if (ok) b;', { ...mutant, times: 2 })).toBe('if ($&) a; if ($&) b;');
  });

  it('differs in a second place, where both are needed', () => {
    const both = { ...mutant, and: { find: 'b', replace: 'c' } };
    expect(mutate('a; if (ok) b;', both)).toBe('a; if ($&) c;');
    expect(() => mutate('a; if (ok) d;', both)).toThrow('0 times');
  });

  it.each([
    ['nowhere', 'a; b;', '0 times'],
    ['twice', 'if (ok) a; if (ok) b;', '2 times'],
  ])('is refused where what is to be found stands %s', (_, source, times) => {
    expect(() => mutate(source, mutant)).toThrow(times);
  });

  it('is refused where it changes nothing', () => {
    expect(() => mutate('if (ok)', { ...mutant, replace: 'if (ok)' })).toThrow('with itself');
  });

  it.each(MUTANTS)('$name stands as often as it says in the file it is for: $what', (defined: Mutant) => {
    const source = readFileSync(new URL(`../../../dist/modules/${defined.file}`, import.meta.url), 'utf8');
    expect(mutate(source, defined)).not.toBe(source);
  });

  it('has a name of its own', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  });
});

describe('the program of a worker', () => {
  const claims = "redis.call('SET', claimKey, granted";
  const forgets = MUTANTS.find(({ name }) => name === 'claim-forgets-tick')!;

  it('has the broken text where it is a mutant, and what is published where it is none', () => {
    expect(readFileSync(workerProgram(), 'utf8')).toContain(claims);
    expect(readFileSync(workerProgram(replacedBy(forgets)), 'utf8')).not.toContain(claims);
  });
});
