import { InvalidLockOptionsError, LockModeMismatchError } from '../../../lib/kernel/api/errors.js';
import type { SemaphoreOptions, PermitOptions } from '../../../lib/kernel/semaphore/semaphore-options.js';
import { rejection } from '../../support/expect/eventually.js';
import { type Instance, LockWorld } from '../../support/world/lock-world.js';

describe('the input of a semaphore', () => {
  let a: Instance;

  beforeEach(() => {
    a = new LockWorld().instance('a');
  });
  afterEach(() => {
    // Whatever is refused is refused before anything is sent.
    expect(a.store.commands).toEqual([]);
  });

  it.each<[string, unknown, unknown, string, string]>([
    ['no options', 'x', undefined, 'permits is missing: say how many permits semaphore("x") has in all.', 'permits'],
    ['no number', 'x', {}, 'permits is missing', 'permits'],
    ['zero', 'x', { permits: 0 }, 'permits must be an integer from 1 to 1000000 (permits), not 0.', 'permits'],
    ['a fraction', 'x', { permits: 1.5 }, 'not 1.5.', 'permits'],
    ['NaN', 'x', { permits: NaN }, 'not NaN.', 'permits'],
    ['null', 'x', { permits: null }, 'not null.', 'permits'],
    ['too many', 'x', { permits: 1_000_001 }, 'not 1000001.', 'permits'],
    ['a text', 'x', { permits: '3' }, 'not "3".', 'permits'],
    ['a number alone', 'x', 3, 'semaphore("x") must be an object, not 3.', 'semaphore("x")'],
    [
      'a misspelt option',
      'x',
      { permit: 3 },
      'semaphore("x") does not know the option "permit". Did you mean permits?',
      'permit',
    ],
    [
      'several names',
      ['a', 'b'],
      { permits: 3 },
      'an array of 2 is not a string. A resource is a non-empty string of at most 512 bytes.',
      'resource',
    ],
    [
      'an empty name',
      '',
      { permits: 3 },
      'The resource given to semaphore cannot be used: the name is empty.',
      'resource',
    ],
  ])('%s is refused', (_, resource, options, message, option) => {
    const make = () => a.locks.semaphore(resource as string, options as SemaphoreOptions);
    expect(make).toThrow(InvalidLockOptionsError);
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ option }));
  });

  it.each<[string, unknown, string, string]>([
    ['a count of zero', { count: 0 }, 'count must be an integer from 1 to 1000000 (permits), not 0.', 'count'],
    ['a fraction', { count: 1.5 }, 'not 1.5.', 'count'],
    ['a text', { count: '2' }, 'not "2".', 'count'],
    ['more than there are', { count: 4 }, 'count is 4, but there are 3 permits: it could never be granted.', 'count'],
    ['a mode', { mode: 'read' }, 'permit options do not know the option "mode".', 'mode'],
    ['permits, which the semaphore has', { permits: 2 }, 'do not know the option "permits".', 'permits'],
    ['a misspelt option', { counts: 2 }, 'Did you mean count?', 'counts'],
    ['a number alone', 2, 'permit options must be an object, not 2.', 'permit options'],
    ['a lease too short', { leaseMs: 1 }, 'leaseMs must be an integer from 50', 'leaseMs'],
  ])('a call with %s is refused', async (_, options, message, option) => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    const calls = [
      semaphore.acquire(options as PermitOptions),
      semaphore.tryAcquire(options as PermitOptions),
      semaphore.using(options as PermitOptions, () => {}),
    ];
    for (const call of calls) {
      const error = await rejection<InvalidLockOptionsError>(call);
      expect(error).toBeInstanceOf(InvalidLockOptionsError);
      expect(error.message).toContain(message);
      expect(error.option).toBe(option);
    }
  });

  it('work that is no function is refused before a permit is requested', async () => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    for (const call of [semaphore.using({}, undefined as never), semaphore.using(undefined as never)]) {
      expect(await rejection(call)).toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'work' });
    }
  });

  it.each([0, 1.5, '4', undefined])('resize(%p) is refused', async (permits) => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    expect(await rejection(semaphore.resize(permits as number))).toBeInstanceOf(InvalidLockOptionsError);
    expect(semaphore.permits).toBe(3);
  });
});

describe('the errors of a semaphore with conflicting uses', () => {
  let a: Instance;
  let b: Instance;

  beforeEach(() => {
    const world = new LockWorld();
    [a, b] = [world.instance('a'), world.instance('b')];
  });

  it('name both numbers, and the way out', async () => {
    await a.locks.semaphore('x', { permits: 3 }).acquire();
    const error = await rejection(b.locks.semaphore('x', { permits: 4 }).acquire());
    expect(error).toBeInstanceOf(LockModeMismatchError);
    expect(error.message).toBe(
      '"x" is in use as a semaphore with 3 permits, and this call sets 4. Use the same number everywhere, or call resize(4) on the semaphore.',
    );
  });

  it('report that the resource is locked, in any mode', async () => {
    for (const mode of ['exclusive', 'reentrant', 'read', 'write'] as const) {
      await using _lease = await a.locks.acquire('x', { mode });
      const semaphore = b.locks.semaphore('x', { permits: 4 });
      const message = `"x" is locked (mode ${mode}), and this call uses it as a semaphore. Give one of the two another name.`;
      for (const call of [semaphore.acquire(), semaphore.tryAcquire(), semaphore.available()]) {
        expect(await rejection(call)).toMatchObject({ code: 'LOCK_MODE_MISMATCH', message });
      }
      expect((await rejection(semaphore.resize(5))).message).toContain('and this call uses it as a semaphore');
      expect(semaphore.permits).toBe(4);
    }
  });

  it('report that a semaphore is too small for a request', async () => {
    const semaphore = a.locks.semaphore('x', { permits: 3 });
    await semaphore.acquire();
    await semaphore.resize(2);
    const error = await rejection(b.locks.semaphore('x', { permits: 3 }).acquire({ count: 3 }));
    expect(error.message).toBe(
      '"x" has 2 permits since it was resized, and this call wants 3 of them at once, which could never be granted. Ask for fewer, or resize the semaphore.',
    );
  });
});
