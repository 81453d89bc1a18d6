import { InvalidLockOptionsError } from '../../../lib/kernel/api/errors.js';
import { LOCK_DEFAULTS, type LockOptions, resolveLockOptions } from '../../../lib/kernel/api/lock-options.js';

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
  it.each<[keyof LockOptions, unknown, string, string]>([
    ['leaseMs', 49, LEASE, '49'],
    ['leaseMs', 86_400_001, LEASE, '86400001'],
    ['leaseMs', 100.5, LEASE, '100.5'],
    ['leaseMs', NaN, LEASE, 'NaN'],
    ['leaseMs', Infinity, LEASE, 'Infinity'],
    ['leaseMs', -1, LEASE, '-1'],
    ['leaseMs', '100', LEASE, '"100"'],
    ['leaseMs', null, LEASE, 'null'],
    ['leaseMs', 100n, LEASE, '100'],
    ['waitMs', -1, WAIT, '-1'],
    ['waitMs', 0.5, WAIT, '0.5'],
    ['waitMs', NaN, WAIT, 'NaN'],
    ['waitMs', -Infinity, WAIT, '-Infinity'],
    ['maxHoldMs', 49, HOLD, '49'],
    ['maxHoldMs', [], HOLD, 'an array of 0'],
    ['attemptTimeoutMs', 9, ATTEMPT, '9'],
    ['attemptTimeoutMs', 60_001, ATTEMPT, '60001'],
    ['warnAfterMs', 0, '1 or more', '0'],
    ['group', '', '1 to 100', '""'],
    ['group', 'a\u202eb', '1 to 100', String.raw`"a\u202eb"`],
    ['maxWaiters', 0, WAITERS, '0'],
    ['maxWaiters', -1, WAITERS, '-1'],
    ['maxWaiters', Infinity, WAITERS, 'Infinity'],
    ['maxAhead', -1, 'an integer of 0 or more (calls)', '-1'],
    ['watchdog', 'yes', 'true or false', '"yes"'],
    ['watchdog', 1, 'true or false', '1'],
    ['strictOrder', 0, 'true or false', '0'],
    ['mode', 'shared', "'exclusive', 'reentrant'", '"shared"'],
    ['retry', { intervalMs: 10 }, 'a strategy with a next() method', 'an object (Object)'],
    ['retry', 5, 'a strategy with a next() method', '5'],
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
    ['waitms', 'waitMs'],
    ['wachdog', 'watchdog'],
    ['maxHold', 'maxHoldMs'],
    ['singal', 'signal'],
    ['strictorder', 'strictOrder'],
    ['maxWaiter', 'maxWaiters'],
  ])('refuse %s: did you mean %s?', (wrong, right) => {
    expect(complaint({ [wrong]: 1 }).message).toBe(
      `lock options do not know the option "${wrong}". Did you mean ${right}?`,
    );
  });

  it('list all options if none is similar', () => {
    expect(complaint({ somethingElse: 1 }).message).toContain(
      'They know: mode, leaseMs, waitMs, unavailableMs, watchdog',
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
    expect(message).toContain('They know: mode');
  });

  it.each<[LockOptions]>([
    [{ leaseMs: 50 }],
    [{ leaseMs: 86_400_000 }],
    [{ waitMs: 0 }],
    [{ waitMs: Infinity }],
    [{ maxHoldMs: 50 }],
    [{ attemptTimeoutMs: 10 }],
    [{ strictOrder: true, maxWaiters: 1 }],
    [{ strictOrder: false, maxWaiters: 1_000_000 }],
    [{ signal: AbortSignal.abort(), mode: 'reentrant', watchdog: false, retry: { next: () => null } }],
  ])('accept %p', (options) => {
    expect(resolveLockOptions(options, LOCK_DEFAULTS)).toMatchObject(options.maxHoldMs ? {} : options);
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
