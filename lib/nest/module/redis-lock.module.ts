import 'reflect-metadata';
import {
  type DynamicModule,
  Module,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnModuleInit,
  type Provider,
  type Type,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, ModulesContainer } from '@nestjs/core';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import {
  checkRegistrations,
  type OptionsOfFactory,
  type RedisLockModuleAsyncOptions,
  type RedisLockOptionsFactory,
  registrationProvider,
} from './registration.js';
import { createLockService } from './create-lock-service.js';
import { campaignForAll, leaderOnlyMethodsOf, leadershipsIn } from '../../features/leader/nest/leaderships.js';
import { registerOnceMethods } from '../../features/once/nest/once.decorator.js';
import {
  checkExtras,
  mayShareKeys,
  type RedisLockModuleExtras,
  type RedisLockModuleOptions,
  type ResolvedModuleOptions,
  resolveModuleOptions,
} from './module-options.js';
import { RedisLockService } from '../redis-lock.service.js';
import {
  DEFAULT_NAME,
  getRedisLockOptionsToken,
  getRedisLockToken,
  groupsOf,
  type InjectedClass,
  inOtherCopies,
  TEST_STORES,
  type TestStores,
} from '../service-parts.js';
import { jobProviders } from '../../features/jobs/nest/added/job-providers.js';
import { jobsOf } from '../../features/jobs/nest/singleton-method.js';
import { leaderResource } from '../../kernel/api/resource.js';
import type { Groups } from '../../kernel/events/observers.js';
import { checkHandlers } from '../handlers/check-handlers.js';
import { handlerLocksOf, lockedHandlersOf } from '../handlers/handler-locks.js';
import { warnOfUnansweredErrors } from '../handlers/unanswered-errors.js';
import { warnOfLockedTicks } from '../../features/jobs/nest/added/locked-ticks.js';
import { Scan } from '../scan.js';
import { refuseWrongOrder } from '../decorators/transaction-order.js';
import { lockedMethodsOf } from '../decorators/method.js';

/** Checks all decorated methods when the application starts, and begins their campaigns. One for each lock service. */
class BootChecks implements OnModuleInit, OnApplicationBootstrap {
  #leaderships: ReturnType<typeof leadershipsIn> = new Map();

  /**
   * @param lockService the name of the lock service
   * @param waitsForCommit whether a release waits for the end of a transaction
   */
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly lockService: string,
    private readonly service: RedisLockService,
    private readonly waitsForCommit: boolean,
  ) {}

  /** @throws InvalidLockOptionsError if no call would hold the lock of a decorator */
  onModuleInit(): void {
    const scan = new Scan(this.discovery, this.lockService);
    const groups = groupsOf(this.service);
    if (groups) registerGroups(scan, groups);
    warnOfLockedTicks(scan, this.discovery);
    checkHandlers(scan);
    warnOfUnansweredErrors(scan);
    refuseWrongOrder(scan, (method) => this.waitsForCommit || handlerLocksOf(method) !== undefined);
    registerOnceMethods(scan, this.service);
    this.#leaderships = leadershipsIn(scan);
  }

  onApplicationBootstrap(): void {
    campaignForAll(this.service, this.#leaderships.values());
  }
}

/** Registers the groups of all decorated methods, jobs and leaderships, before any call can take their places. */
function registerGroups(scan: Scan, groups: Groups): void {
  // The name of a job may contain the class of the instance.
  for (const prototype of scan.prototypes) {
    for (const { job, name } of jobsOf(prototype)) if (scan.isOurs(job)) groups.register('job', name);
  }
  for (const prototype of scan.allPrototypes) {
    const methods = prototype as Record<string | symbol, object>;
    const plans = lockedHandlersOf(prototype).flatMap((name) => handlerLocksOf(methods[name]!)?.plans ?? []);
    for (const { group, mode } of [...lockedMethodsOf(prototype), ...plans].filter(scan.isOurs)) {
      groups.register('method', group, mode);
    }
    for (const { name } of leaderOnlyMethodsOf(prototype).filter(scan.isOurs)) {
      groups.register('leadership', name, 'exclusive', leaderResource(name, 'leader'));
    }
  }
}

/** The options of `forRoot`: with either `connection` or `quorum`. */
type WithConnectionOrQuorum = RedisLockModuleOptions & RedisLockModuleExtras;

const ASYNC_OPTION_NAMES = ['imports', 'inject', 'useFactory', 'useClass', 'useExisting'];

/**
 * Distributed locks for an application. The module is global by default: import it once. An application with two
 * registrations under the same name does not start.
 */
@Module({})
export class RedisLockModule {
  /**
   * Registers a lock service.
   *
   * ```ts
   * RedisLockModule.forRoot({
   *   connection: 'redis://localhost:6379', // or ioredis options, or a client of yours
   *   leaseMs: 15_000, // how long Redis keeps a lock without a renewal
   *   waitMs: 18_000, // how long a call waits for a busy resource
   * });
   * ```
   *
   * @throws InvalidLockOptionsError if an option is invalid
   */
  static forRoot(options: WithConnectionOrQuorum): DynamicModule {
    checkExtras('RedisLockModule.forRoot', options);
    const { service: name = DEFAULT_NAME, global, ...moduleOptions } = options;
    const useValue = resolveModuleOptions(moduleOptions);
    const registration = registrationProvider(name, RedisLockModule.forRoot);
    return createModule(
      { service: name, global },
      [],
      [{ provide: getRedisLockOptionsToken(name), useValue }, registration],
    );
  }

  /**
   * Registers a lock service whose options come from other providers, such as `ConfigService`.
   *
   * @throws InvalidLockOptionsError if an option is invalid; for the options that the factory returns, when the
   *   application starts
   */
  static forRootAsync<O extends RedisLockModuleOptions = RedisLockModuleOptions>(
    given: OptionsOfFactory<O>,
  ): DynamicModule {
    const options = given as RedisLockModuleAsyncOptions;
    checkExtras('RedisLockModule.forRootAsync', options, ASYNC_OPTION_NAMES);
    const registration = registrationProvider(options.service ?? DEFAULT_NAME, RedisLockModule.forRootAsync);
    return createModule(options, options.imports ?? [], [...asyncOptionsProviders(options), registration]);
  }
}

function createModule(
  { service: name = DEFAULT_NAME, global = true }: RedisLockModuleExtras,
  imports: NonNullable<ModuleMetadata['imports']>,
  optionsProviders: Provider[],
): DynamicModule {
  const token = getRedisLockToken(name);
  const optionsToken = getRedisLockOptionsToken(name);
  const service = {
    inject: [ModulesContainer, optionsToken, TEST_STORES],
    useFactory: (modules: ModulesContainer, options: ResolvedModuleOptions, testStores: TestStores | null) => {
      checkRegistrations(name, modules);
      return createLockService(options, name, testStores);
    },
  };
  const bootChecks: Provider = {
    provide: BootChecks,
    inject: [DiscoveryService, token, optionsToken],
    useFactory: (discovery: DiscoveryService, locks: RedisLockService, { transactions }: ResolvedModuleOptions) =>
      new BootChecks(discovery, name, locks, transactions !== undefined),
  };
  const jobs = jobProviders(name, mayShareKeys);
  const injected: readonly InjectedClass[] = [
    { type: RedisLockService as unknown as Type, token, ...service },
    jobs.injected,
  ];
  const isDefault = name === DEFAULT_NAME;
  return {
    module: RedisLockModule,
    global,
    imports: [DiscoveryModule, ...imports],
    // Read when the application starts: a second copy of this package may be loaded after forRoot() was called.
    get providers() {
      return [
        ...optionsProviders,
        { provide: TEST_STORES, useValue: null },
        ...injected.flatMap((each) => providersOf(each, isDefault)),
        bootChecks,
        jobs.explorer,
      ];
    },
    get exports() {
      const classes = isDefault ? injected.flatMap(({ type }) => [type, ...inOtherCopies(type)]) : [];
      return [...classes, ...injected.map((each) => each.token)];
    },
  };
}

/**
 * The decorators inject by token. The default registration also provides its classes: they can be injected by type, and
 * a test that overrides the class also overrides it for the decorators.
 */
function providersOf({ type, token, ...factory }: InjectedClass, isDefault: boolean): Provider[] {
  if (!isDefault) return [{ provide: token, ...factory }];
  const names = [token, ...inOtherCopies(type)];
  return [{ provide: type, ...factory }, ...names.map((provide) => ({ provide, useExisting: type }))];
}

function asyncOptionsProviders(options: RedisLockModuleAsyncOptions): Provider[] {
  const provide = getRedisLockOptionsToken(options.service);
  const { useFactory, useClass, useExisting, inject = [] } = options;
  if (useFactory) {
    const resolve = async (...dependencies: never[]): Promise<ResolvedModuleOptions> =>
      resolveModuleOptions(await useFactory(...dependencies));
    return [{ provide, inject, useFactory: resolve }];
  }
  const factory = useExisting ?? useClass;
  if (!factory) {
    throw new InvalidLockOptionsError(
      'RedisLockModule.forRootAsync needs one of useFactory, useClass and useExisting.',
      'useFactory',
    );
  }
  const fromFactory: Provider = {
    provide,
    inject: [factory],
    useFactory: async (made: RedisLockOptionsFactory) => resolveModuleOptions(await made.createRedisLockOptions()),
  };
  return useExisting ? [fromFactory] : [fromFactory, { provide: factory, useClass: factory }];
}
