import { InvalidLockOptionsError } from '../core/api/errors.js';
import { describeValue } from '../core/api/validation.js';
import { TEST_STORES } from '../nest/tokens.js';
import { fleetStores, TEST_LOCKS_OPTIONS, type TestLocksOptions } from './test-locks-options.js';

/** The part of the `TestingModuleBuilder` of `@nestjs/testing` that is needed. */
export interface TestingBuilder<B> {
  overrideProvider(token: symbol): { useValue(value: unknown): B };
}

/**
 * Puts all lock services of an application on the testing kit, named ones too. The options of the application stay;
 * those of Redis are not used, and nothing is connected.
 *
 * ```ts
 * const module = await withTestLocks(Test.createTestingModule({ imports: [AppModule] })).compile();
 * ```
 *
 * @throws InvalidLockOptionsError if an option is invalid, or the builder is none
 */
export function withTestLocks<B extends TestingBuilder<B>>(builder: B, options: TestLocksOptions = {}): B {
  TEST_LOCKS_OPTIONS.check('withTestLocks', options);
  if (typeof (builder as Partial<TestingBuilder<B>> | undefined)?.overrideProvider !== 'function') {
    throw new InvalidLockOptionsError(
      `withTestLocks needs what Test.createTestingModule({ ... }) returns, not ${describeValue(builder)}. Call compile() ` +
        'on what it returns, not before.',
      'builder',
    );
  }
  return builder.overrideProvider(TEST_STORES).useValue(fleetStores(options));
}
