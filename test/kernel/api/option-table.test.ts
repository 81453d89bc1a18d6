import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { flag, milliseconds, OptionTable, without } from '../../../lib/kernel/api/validation.js';

const TABLE = new OptionTable({ pauseMs: milliseconds(1, 100).default(10), loud: flag() });

const NEEDED = new OptionTable({ everyMs: milliseconds(1, 100).required() });

describe('a table of options', () => {
  it('lists the options, and the defaults of those that have one', () => {
    expect(TABLE.names).toEqual(['pauseMs', 'loud']);
    expect(TABLE.defaults).toEqual({ pauseMs: 10 });
  });

  it('accepts allowed values, and missing ones', () => {
    expect(() => TABLE.check('here', { pauseMs: 100, loud: undefined })).not.toThrow();
  });

  it.each([
    [{ pauseMs: 101 }, 'pauseMs must be an integer from 1 to 100 (milliseconds), not 101.'],
    [{ loud: 'yes' }, 'loud must be true or false, not "yes".'],
    [{ constructor: 1 }, 'here does not know the option "constructor". It knows: pauseMs, loud.'],
    [JSON.parse('{"__proto__": 1}') as object, 'here does not know the option "__proto__". It knows: pauseMs, loud.'],
    [Object.create({ pauseMs: 0 }) as object, 'pauseMs must be an integer from 1 to 100 (milliseconds), not 0.'],
    [
      new (class {
        get loud() {
          return 1;
        }
      })(),
      'loud must be true or false, not 1.',
    ],
  ])('refuses %p', (given, message) => {
    expect(() => TABLE.check('here', given)).toThrow(new InvalidLockOptionsError(message, ''));
  });

  it('ignores inherited properties', () => {
    expect(() => TABLE.check('here', Object.create({ other: 1, pauseMs: 5 }) as object)).not.toThrow();
  });

  it.each([{}, { everyMs: undefined }])('refuses %p, which leaves out a required option', (given) => {
    const message = 'outer.everyMs must be an integer from 1 to 100 (milliseconds), not undefined.';
    expect(() => NEEDED.check('outer', given, 'outer.')).toThrow(message);
    expect(() => NEEDED.check('outer', { everyMs: 1 }, 'outer.')).not.toThrow();
  });

  it('creates another one without some of its options', () => {
    const rest = new OptionTable(without(TABLE.options, 'loud'));
    expect(rest.names).toEqual(['pauseMs']);
    expect(() => rest.check('here', { loud: true })).toThrow('here does not know the option "loud"');
  });

  it('names the option that contains them', () => {
    expect(() => TABLE.check('outer', { pauseMs: 0 }, 'outer.')).toThrow('outer.pauseMs must be an integer');
  });
});
