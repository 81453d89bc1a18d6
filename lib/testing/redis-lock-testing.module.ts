import type { DynamicModule } from '@nestjs/common';
import { InvalidLockOptionsError } from '../kernel/api/errors.js';
import { describeValue, Option, type OptionsOf, OptionTable, wrongValue } from '../kernel/api/validation.js';
import type { OptionsWithConnection, RedisLockModuleExtras } from '../nest/module/module-options.js';
import { RedisLockModule } from '../nest/module/redis-lock.module.js';
import { TEST_STORES, type TestStores } from '../nest/service-parts.js';
import { fleetOf, FleetPlace, type TestClock, type TestFleet } from './fleet/test-fleet.js';

/** Options of {@link withTestLocks}. */
export interface TestLocksOptions {
  /**
   * The name of a fleet. All applications in this process with the same name compete for locks, like instances of one
   * application, until the last of them has closed.
   *
   * @allowed 1 to 100 characters
   * @default a separate fleet for each application
   */
  fleet?: string;
  /**
   * The clock of leases, waits, renewals and singleton jobs. A `'manual'` clock only moves when you call `advance(ms)`.
   * The fake timers of a test runner move the `'real'` clock, but not a `'manual'` one.
   *
   * @default 'real'
   */
  clock?: TestClock;
  /**
   * The start time of a `'manual'` clock. In a fleet, the value of the application that starts first applies.
   *
   * @allowed a `Date`, or epoch milliseconds
   * @default 2026-01-01T00:00:00Z
   */
  startsAt?: Date | number;
  /**
   * `true` makes a call throw a `TestKitError` if it nests locks in an order that forms a cycle with earlier orders,
   * even if the lock is free. With `false`, you only get the event `lockOrder` and a log line.
   *
   * @default false
   */
  throwOnLockOrder?: boolean;
}

export const TEST_LOCKS_OPTIONS = new OptionTable({
  fleet: Option.text(/^.{1,100}$/u, '1 to 100 characters'),
  clock: Option.oneOf<TestClock>(['real', 'manual']).default('real'),
  startsAt: Option.checked<Date | number>(checkDate),
  throwOnLockOrder: Option.flag().default(false),
} satisfies OptionsOf<TestLocksOptions>);

function checkDate(option: string, value: unknown): void {
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms === 'number' && Number.isFinite(ms)) return;
  throw wrongValue(option, 'a valid Date, or milliseconds since the Unix epoch', value);
}

/** Puts lock services on the fleet with the name. Without a name, all services of one application share one fleet. */
function fleetStores({ fleet: name, clock, startsAt, throwOnLockOrder = false }: TestLocksOptions): TestStores {
  let own: TestFleet | undefined;
  return {
    place(context) {
      // A second service of the same name belongs to another application, because a module may be used by several.
      const isOther =
        own === undefined || own.hasEnded || own.instances.some(({ service }) => service === context.service);
      const kind = clock ?? TEST_LOCKS_OPTIONS.defaults.clock;
      if (name !== undefined || isOther) own = fleetOf(name, kind, startsAt && Number(startsAt));
      return new FleetPlace(own!, context, throwOnLockOrder);
    },
  };
}

// The part of the `TestingModuleBuilder` of `@nestjs/testing` that is used here.
export interface TestingBuilder<B> {
  overrideProvider(token: symbol): { useValue(value: unknown): B };
}

/**
 * Replaces the locks of every lock service in an application, including named ones, with test locks in memory. Keeps
 * all options except those for Redis, and connects to nothing.
 *
 * ```ts
 * const module = await withTestLocks(Test.createTestingModule({ imports: [AppModule] })).compile();
 * ```
 *
 * @throws InvalidLockOptionsError if an option is invalid, or the first argument is not a builder
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

// The options of the lock module that only apply to Redis.
const OF_REDIS = ['connection', 'quorum', 'durability', 'restartQuarantineMs', 'persistence'] as const;
type OfRedis = (typeof OF_REDIS)[number];

/** The options of `RedisLockTestingModule.forRoot`: the options of the lock module, without the Redis options. */
export interface RedisLockTestingModuleOptions
  extends TestLocksOptions, Omit<OptionsWithConnection, OfRedis>, RedisLockModuleExtras {}

/** The lock module for tests: the real library, with locks in the memory of this process. */
export class RedisLockTestingModule {
  /**
   * Registers a lock service whose locks a test controls with {@link testLocks}.
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
      // Read when the application starts, like those in the module. The last provider of a token counts.
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
