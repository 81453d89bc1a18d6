import { type FactoryProvider, Inject, type Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { InvalidLockOptionsError } from '../kernel/api/errors.js';
import { sharedByCopies } from '../kernel/util/objects.js';
import { quote } from '../kernel/util/quoted.js';
import type { TransactionHooks } from '../kernel/api/transactions.js';
import type { Groups } from '../kernel/events/observers.js';
import type { JobRecords } from '../features/jobs/core/job-records.js';
import type { OnceCalls } from '../features/once/core/once-calls.js';
import type { MissedTicks } from '../features/jobs/core/missed-ticks.js';
import type { LockClient } from '../kernel/lock-client.js';
import type { SingletonRuns } from '../features/jobs/core/singleton-runs.js';
import { type Clock, SYSTEM_CLOCK } from '../kernel/util/clock.js';
import type { LockTelemetry } from '../kernel/events/telemetry.js';
import type { LockStores } from '../kernel/lock-stores.js';

/** The name of a registration without a name of its own. */
export const DEFAULT_NAME = 'default';

/**
 * Returns the injection token of a lock service.
 *
 * @param name the `service` of its registration; without it, the default one
 */
export function getRedisLockToken(name: string = DEFAULT_NAME): string {
  // A string, not the class, because the ES module and the CommonJS copy of this package must share it.
  return `RedisLockService:${name}`;
}

export function getRedisLockOptionsToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleOptions:${name}`;
}

/**
 * Returns the lock service with this name, wherever in the application it is registered.
 *
 * @param asker who needs it, and how it was told the name
 * @throws InvalidLockOptionsError if none has this name
 */
export function registered<T extends object>(
  modules: ModuleRef,
  name: string,
  asker: { readonly name: string; readonly option: string; readonly passedAs: string },
): T {
  try {
    return modules.get<T>(getRedisLockToken(name), { strict: false });
  } catch {
    const why =
      name === DEFAULT_NAME
        ? 'default lock service: no RedisLockModule is registered without the option service'
        : `lock service: no RedisLockModule is registered with service: ${quote(name)}`;
    throw new InvalidLockOptionsError(
      `${asker.name} finds no ${why}. Pass the name from forRoot({ service: name }) in ${asker.passedAs}.`,
      asker.option,
    );
  }
}

export function getRedisLockRegistrationToken(name: string = DEFAULT_NAME): string {
  return `RedisLockModuleRegistration:${name}`;
}

/**
 * The replacement for the stores of every registration in a test, otherwise `null`. A symbol of the process, so that
 * both copies of this package share it.
 */
export const TEST_STORES = Symbol.for('nestjs-redis-lock:test-stores:1');

/**
 * Returns the injection token of the `SingletonJobs` of a lock service.
 *
 * @param name the `service` of its registration; without it, the default one
 */
export function getSingletonJobsToken(name: string = DEFAULT_NAME): string {
  return `SingletonJobs:${name}`;
}

/**
 * Injects the `SingletonJobs` of the lock service with this name, or of the default one.
 *
 * ```ts
 * constructor(@InjectSingletonJobs('billing') private readonly jobs: SingletonJobs) {}
 * ```
 */
export function InjectSingletonJobs(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getSingletonJobsToken(name));
}

/**
 * Injects the lock service with this name, or the default one.
 *
 * ```ts
 * constructor(@InjectRedisLock('billing') private readonly locks: RedisLockService) {}
 * ```
 */
export function InjectRedisLock(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getRedisLockToken(name));
}

/** A class that the module provides, by its token, and for the default lock service by itself. */
export interface InjectedClass extends Pick<FactoryProvider, 'inject' | 'useFactory'> {
  readonly type: Type;
  readonly token: string;
}

/**
 * The classes that Nest injects, of each copy of this package that the process has loaded, with their names. Nest
 * injects by class, and a CommonJS library in an ES module application has classes of its own.
 */
const names = sharedByCopies('injected-classes:1', () => new Map<Type, string>());

/** @param classes by their names, which are the same in every copy: a minifier may rename the class itself */
export function addInjected(classes: Readonly<Record<string, unknown>>): void {
  for (const [name, each] of Object.entries(classes)) names.set(each as Type, name);
}

/** Returns this class in the other copies that are loaded now. */
export function inOtherCopies(own: unknown): Type[] {
  const ownName = names.get(own as Type);
  return [...names].flatMap(([each, name]) => (name === ownName && each !== own ? [each] : []));
}

/** The lock service behind a `TestPlace`. */
export interface TestContext {
  /** The `service` of the registration; `'default'` without one. */
  readonly service: string;
  /** The name of this process, shown for holders. */
  readonly instanceId: string;
  /** `true` if the options of the application set its `instanceId`. */
  readonly isNamed: boolean;
}

/** The replacement for the stores of lock services in a test. */
export interface TestStores {
  /** Called when a lock service is created. */
  place(context: TestContext): TestPlace;
}

/** The stores of one lock service in a test. */
export interface TestPlace {
  readonly stores: LockStores;
  /** Follows the lock service, beside the telemetries of its options. */
  readonly telemetry: LockTelemetry;
  /** Called when the lock service has been created. @param injected the object that the application injects for it */
  created(client: LockClient, injected: object): void;
}

/** The objects to which a lock service forwards its calls. A test may replace them. */
export interface ForwardedTo {
  client: LockClient;
  singletonRuns: SingletonRuns;
  once: Pick<OnceCalls, 'run' | 'forget' | 'assertSupported'>;
}

/** The parts of one lock service: the decorators and the explorers find them by the service. */
export interface ServiceParts extends ForwardedTo {
  readonly drainMs: number;
  readonly onStarted?: (() => void) | undefined;
  /** The clock of its timers. @default the system's */
  readonly clock?: Clock | undefined;
  /** Only set if its leases last until the end of a transaction. */
  readonly transactions?: TransactionHooks | undefined;
  /** The jobs that the store remembers. */
  readonly jobs?: { readonly missed: MissedTicks; readonly records: JobRecords } | undefined;
  /** The jobs that this process can run. Set by `SingletonJobs`. */
  ownJobs?: { names(): readonly string[]; find(name: string): object | undefined };
  /** Only set in a test. */
  readonly place?: TestPlace | undefined;
}

/** Both copies of this package, ES module and CommonJS, find the parts of a service that one of them has made. */
const PARTS = Symbol.for('nestjs-redis-lock:parts:1');

export function keepParts(service: object, parts: ServiceParts): void {
  Object.defineProperty(service, PARTS, { value: parts });
}

/** @returns undefined for a test double of a lock service */
export function partsOf(service: unknown): ServiceParts | undefined {
  return (service as { [PARTS]?: ServiceParts } | null | undefined)?.[PARTS];
}

/** Returns the clock of a lock service, for timers around it. */
export function clockOf(service: object): Clock {
  return partsOf(service)?.clock ?? SYSTEM_CLOCK;
}

export function groupsOf(service: object): Groups | undefined {
  return partsOf(service)?.client.observers.groups;
}
