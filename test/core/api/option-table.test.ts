import { InvalidLockOptionsError } from '../../../lib/core/api/errors.js';
import { flag, milliseconds, OptionTable } from '../../../lib/core/api/option-table.js';

const TABLE = new OptionTable({ pauseMs: milliseconds(1, 100).default(10), loud: flag() });

describe('a table of options', () => {
  it('has their names, and the defaults of those that have one', () => {
    expect(TABLE.names).toEqual(['pauseMs', 'loud']);
    expect(TABLE.defaults).toEqual({ pauseMs: 10 });
  });

  it('takes what each of them allows, and what is left out', () => {
    expect(() => TABLE.check('here', { pauseMs: 100, loud: undefined })).not.toThrow();
  });

  it.each([
    [{ pauseMs: 101 }, 'pauseMs must be an integer from 1 to 100 (milliseconds), not 101.'],
    [{ loud: 'yes' }, 'loud must be true or false, not "yes".'],
    [{ constructor: 1 }, 'here does not know the option "constructor". It knows: pauseMs, loud.'],
    [Object.create({ pauseMs: 0 }) as object, 'pauseMs must be an integer from 1 to 100 (milliseconds), not 0.'],
  ])('refuses %p', (given, message) => {
    expect(() => TABLE.check('here', given)).toThrow(new InvalidLockOptionsError(message, ''));
  });

  it('names the option that contains them', () => {
    expect(() => TABLE.check('outer', { pauseMs: 0 }, 'outer.')).toThrow('outer.pauseMs must be an integer');
  });
});
