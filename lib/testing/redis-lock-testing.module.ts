import type { DynamicModule } from '@nestjs/common';
import { InvalidLockOptionsError } from '../core/api/errors.js';
import type { OptionsWithConnection, RedisLockModuleExtras } from '../nest/module/module-options.js';
import { RedisLockModule } from '../nest/module/redis-lock.module.js';
import { TEST_STORES } from '../nest/tokens.js';
import { fleetStores, TEST_LOCKS_OPTIONS, type TestLocksOptions } from './test-locks-options.js';

/** The options of the lock module that only a Redis has. */
const OF_REDIS = ['connection', 'quorum', 'store', 'durability', 'restartQuarantineMs'] as const;
type OfRedis = (typeof OF_REDIS)[number];

/** The options of `RedisLockTestingModule.forRoot`: those of the lock module, without the ones of Redis. */
export interface RedisLockTestingModuleOptions
  extends TestLocksOptions, Omit<OptionsWithConnection, OfRedis>, RedisLockModuleExtras {}

/** The lock module for tests: the real library, with locks in the memory of this process. */
export class RedisLockTestingModule {
  /**
   * Registers a lock service whose locks a test controls by {@link testLocks}.
   *
   * @throws InvalidLockOptionsError if an option is invalid
   */
  static forRoot(options: RedisLockTestingModuleOptions = {}): DynamicModule {
    refuseOfRedis(options);
    const { fleet, clock, startsAt, throwOnLockOrder, ...rest } = options;
    const ofKit = { fleet, clock, startsAt, throwOnLockOrder };
    TEST_LOCKS_OPTIONS.check('RedisLockTestingModule.forRoot', ofKit);
    const module = RedisLockModule.forRoot({ connection: 'memory:', ...rest });
    const useValue = fleetStores(ofKit);
    return {
      ...module,
      // Read when the application starts, as those of the module are. The last provider of a token counts.
      get providers() {
        return [...(module.providers ?? []), { provide: TEST_STORES, useValue }];
      },
      get exports() {
        return module.exports ?? [];
      },
    };
  }
}

function refuseOfRedis(options: object): void {
  const option = OF_REDIS.find((name) => (options as Record<string, unknown> | null)?.[name] !== undefined);
  if (option === undefined) return;
  throw new InvalidLockOptionsError(
    `RedisLockTestingModule.forRoot takes no ${option}: it keeps the locks in memory. Leave it out. To test an application ` +
      'with its own options, use withTestLocks(Test.createTestingModule({ imports: [AppModule] })).',
    option,
  );
}
