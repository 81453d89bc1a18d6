import { PARTS, readOptions } from './options.js';

describe('the options of a chaos run', () => {
  it('are the long form of everything, with a seed by chance, where none is given', () => {
    const [one, other] = [readOptions([]), readOptions([])];
    expect(one).toMatchObject({ form: 'long', names: [...PARTS], lanes: 2 });
    expect(one.seed).not.toBe(other.seed);
  });

  it('choose form, seed, parts and chapters', () => {
    const args = '--form short --seed 7 --part faults --part cron --chapter sentinel --lanes 1'.split(' ');
    expect(readOptions(args)).toEqual({
      help: false,
      form: 'short',
      seed: 7,
      names: ['faults', 'cron'],
      chapter: 'sentinel',
      lanes: 1,
    });
  });

  it.each([
    ['--form', 'huge', 'short or long'],
    ['--seed', 'x', 'an integer'],
    ['--part', 'nothing', 'one of faults'],
    ['--lanes', '0', '1 or more'],
  ])('%s %s is refused', (option, value, allowed) => {
    expect(() => readOptions([option, value])).toThrow(allowed);
  });
});
