import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import {
  LOCK_DEFAULTS,
  LOCK_OPTIONS,
  type LockOptions,
  resolveLockOptions,
  SharedOptions,
} from '../../../lib/kernel/api/lock-options.js';
import { exponentialBackoff, fixedInterval, type RetryState } from '../../../lib/kernel/api/retry.js';
import { Option, OptionTable, without } from '../../../lib/kernel/api/validation.js';
import { SeededRandom } from '../../support/world/seeded-random.js';

/** The error for these options. */
function complaint(options: unknown): InvalidLockOptionsError {
  try {
    resolveLockOptions(options as LockOptions, LOCK_DEFAULTS);
  } catch (error) {
    if (error instanceof InvalidLockOptionsError) return error;
    throw error;
  }
  throw new Error('nothing was found wrong');
}

const LEASE = 'an integer from 50 to 86400000';
const WAIT = 'an integer of 0 or more (milliseconds) or Infinity';
const HOLD = 'an integer of 50 or more (milliseconds)';
const ATTEMPT = 'an integer from 10 to 60000';
const WAITERS = 'an integer of 1 or more (waiters)';

describe('lock options', () => {
  it('are one object for calls whose options are all equal', () => {
    const resolved = () => resolveLockOptions({ waitMs: 5 }, LOCK_DEFAULTS);
    // Resolved, `onBusy` and `cancellable` are `newest`.
    const names = Object.keys({ ...without(LOCK_OPTIONS.options, 'onBusy', 'cancellable'), newest: 0 });
    const mixed = names.filter((name) => {
      const shared = new SharedOptions();
      const first = shared.share(resolved());
      expect(shared.share(resolved())).toBe(first);
      const other = { ...first, [name]: 'other' } as never;
      return shared.share(other) !== other;
    });
    expect(mixed).toEqual([]);
  });

  it.each<[keyof LockOptions, unknown, string, string]>([
    ['leaseMs', 49, LEASE, '49'],
    ['leaseMs', 86_400_001, LEASE, '86400001'],
    ['leaseMs', 100.5, LEASE, '100.5'],
    ['leaseMs', NaN, LEASE, 'NaN'],
    ['leaseMs', Infinity, LEASE, 'Infinity'],
    ['leaseMs', '100', LEASE, '"100"'],
    ['leaseMs', null, LEASE, 'null'],
    ['leaseMs', 100n, LEASE, '100'],
    ['waitMs', -1, WAIT, '-1'],
    ['maxHoldMs', 49, HOLD, '49'],
    ['attemptTimeoutMs', 9, ATTEMPT, '9'],
    ['attemptTimeoutMs', 60_001, ATTEMPT, '60001'],
    ['warnAfterMs', 0, '1 or more', '0'],
    ['group', '', '1 to 100', '""'],
    ['group', 'a\u202eb', '1 to 100', String.raw`"a\u202eb"`],
    ['maxWaiters', 0, WAITERS, '0'],
    ['maxAhead', -1, 'an integer of 0 or more (calls)', '-1'],
    ['watchdog', 'yes', 'true or false', '"yes"'],
    ['mode', 'shared', "'exclusive', 'reentrant'", '"shared"'],
    ['retry', { intervalMs: 10 }, 'a strategy with a next() method', 'an object (Object)'],
    ['signal', {}, 'an AbortSignal', 'an object (Object)'],
  ])('refuse %s: %p, with the allowed values and the given one', (option, value, allowed, given) => {
    const { message, option: named, code } = complaint({ [option]: value });
    expect(code).toBe('INVALID_LOCK_OPTIONS');
    expect(named).toBe(option);
    expect(message).toContain(option);
    expect(message).toContain(allowed);
    expect(message).toContain(`not ${given}`);
  });

  it.each([
    ['leaseMS', 'leaseMs'],
    ['lease', 'leaseMs'],
    ['wachdog', 'watchdog'],
    ['maxHold', 'maxHoldMs'],
  ])('refuse %s: did you mean %s?', (wrong, right) => {
    expect(complaint({ [wrong]: 1 }).message).toBe(`lock options do not include "${wrong}". Did you mean ${right}?`);
  });

  it('list all options if none is similar', () => {
    expect(complaint({ somethingElse: 1 }).message).toContain(
      'Known options: mode, leaseMs, waitMs, unavailableMs, watchdog',
    );
  });

  it.each([[null], ['leaseMs'], [5], [[]], [[Symbol('x')]]])('refuse %p', (options) => {
    expect(complaint(options).message).toContain('lock options must be an object');
  });

  it('do not show the content of a value', () => {
    expect(complaint({ leaseMs: { password: 'hunter2' } }).message).not.toContain('hunter2');
  });

  it.each([Symbol('name'), { toString: undefined }, 5, undefined])(
    'say of a value whose constructor is called %p that it is an object',
    (name) => {
      expect(complaint({ leaseMs: { constructor: { name } } }).message).toContain('an object (no prototype)');
    },
  );

  it('do not show a text in place of the options: it may be a URL with its password', () => {
    const { message } = complaint('redis://:hunter2@localhost');
    expect(message).toBe('lock options must be an object, not a string.');
  });

  it('cut a text that is no name, and suggest none', () => {
    const { message } = complaint({ [`leaseMs${'s'.repeat(20_000)}`]: 1 });
    expect(message.length).toBeLessThan(400);
    expect(message).toContain('Known options: mode');
  });

  it.each<[LockOptions]>([
    [{ leaseMs: 50 }],
    [{ leaseMs: 86_400_000 }],
    [{ waitMs: Infinity }],
    [{ attemptTimeoutMs: 10 }],
    [{ strictOrder: true, maxWaiters: 1 }],
    [{ signal: AbortSignal.abort(), mode: 'reentrant', watchdog: false, retry: { next: () => null } }],
  ])('accept %p', (options) => {
    expect(resolveLockOptions(options, LOCK_DEFAULTS)).toMatchObject(options);
  });

  it('use the defaults for options that are left out or undefined', () => {
    const defaults = { ...LOCK_DEFAULTS, leaseMs: 5_000 };
    expect(resolveLockOptions({ leaseMs: undefined, waitMs: 1 }, defaults)).toEqual({
      ...defaults,
      waitMs: 1,
      mode: 'exclusive',
      maxHoldMs: Infinity,
      minHoldMs: 0,
      retry: undefined,
      signal: undefined,
      // The module's default is for work under a lock only.
      warnAfterMs: undefined,
    });
  });

  it('request no lease that is longer than the whole hold', () => {
    expect(resolveLockOptions({ leaseMs: 30_000, maxHoldMs: 500 }, LOCK_DEFAULTS).leaseMs).toBe(500);
  });
});

const TABLE = new OptionTable({ pauseMs: Option.milliseconds(1, 100).default(10), loud: Option.flag() });

const NEEDED = new OptionTable({ everyMs: Option.milliseconds(1, 100).required() });

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
    [{ constructor: 1 }, 'here has no option "constructor". Known options: pauseMs, loud.'],
    [JSON.parse('{"__proto__": 1}') as object, 'here has no option "__proto__". Known options: pauseMs, loud.'],
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
    expect(() => rest.check('here', { loud: true })).toThrow('here has no option "loud"');
  });

  it('names the option that contains them', () => {
    expect(() => TABLE.check('outer', { pauseMs: 0 }, 'outer.')).toThrow('outer.pauseMs must be an integer');
  });
});

function state(attempt: number, random = () => 0.5): RetryState {
  return { attempt, elapsedMs: 0, lastAttempt: 'busy', holderTtlMs: 0, random };
}

describe('fixedInterval', () => {
  it('pauses the same each time, without end', () => {
    const retry = fixedInterval({ intervalMs: 40 });
    expect([1, 2, 1_000_000].map((attempt) => retry.next(state(attempt)))).toEqual([40, 40, 40]);
  });

  it('gives up after maxAttempts', () => {
    const retry = fixedInterval({ intervalMs: 40, maxAttempts: 3 });
    expect([1, 2, 3].map((attempt) => retry.next(state(attempt)))).toEqual([40, 40, null]);
  });

  it.each<[object, RegExp]>([
    [{}, /fixedInterval\.intervalMs must be an integer from 1 to 86400000 \(milliseconds\), not undefined/],
    [{ intervalMs: 0 }, /from 1 to 86400000.*not 0/],
    [{ intervalMs: 1.5 }, /not 1\.5/],
    [
      { intervalMs: 10, maxAttempts: 0 },
      /fixedInterval\.maxAttempts must be an integer of 1 or more \(attempts\) or Infinity, not 0/,
    ],
    [{ interval: 10 }, /Did you mean intervalMs\?/],
  ])('refuses %p', (options, why) => {
    expect(() => fixedInterval(options as never)).toThrow(why);
  });
});

describe('exponentialBackoff', () => {
  it('doubles up to maxMs', () => {
    const retry = exponentialBackoff({ initialMs: 10, maxMs: 100, jitter: false });
    expect([1, 2, 3, 4, 5, 6].map((attempt) => retry.next(state(attempt)))).toEqual([10, 20, 40, 80, 100, 100]);
  });

  it('stays at maxMs forever', () => {
    const retry = exponentialBackoff({ jitter: false });
    expect(retry.next(state(5_000))).toBe(2_000);
  });

  it('takes a random part of the pause, at least 1 ms, so that waiters do not ask in step', () => {
    const retry = exponentialBackoff({ initialMs: 100, maxMs: 100 });
    expect(retry.next(state(1, () => 0))).toBe(1);
    expect(retry.next(state(1, () => 0.25))).toBe(25);
    const random = new SeededRandom(7);
    const pauses = Array.from({ length: 200 }, () => retry.next(state(1, () => random.fraction()))!);
    expect(new Set(pauses).size).toBeGreaterThan(190);
    expect(Math.max(...pauses)).toBeLessThan(100);
  });

  it('gives up after maxAttempts', () => {
    expect(exponentialBackoff({ maxAttempts: 2 }).next(state(2))).toBeNull();
  });

  it.each<[object, RegExp]>([
    [{ initialMs: 0 }, /exponentialBackoff\.initialMs must be an integer from 1/],
    [{ maxMs: -5 }, /exponentialBackoff\.maxMs .* not -5/],
    [{ factor: 0.5 }, /exponentialBackoff\.factor must be a number from 1 to 10, not 0\.5/],
    [{ factor: NaN }, /not NaN/],
    [{ factor: '2' }, /not "2"/],
    [{ jitter: 'full' }, /exponentialBackoff\.jitter must be true or false, not "full"/],
    [{ maxRetries: 3 }, /has no option "maxRetries"/],
  ])('refuses %p', (options, why) => {
    expect(() => exponentialBackoff(options as never)).toThrow(why);
  });
});
