import { randomUUID } from 'node:crypto';
import type { FactoryProvider, ModuleMetadata, Provider, Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { getRedisLockRegistrationToken } from '../service-parts.js';
import { callSiteOf, recordOrigin } from '../../kernel/util/call-site.js';
import { quote } from '../../kernel/util/quoted.js';
import type { IsAny, Mistake } from '../decorators/method-types.js';
import type { RedisLockModuleExtras, RedisLockModuleOptions, RedisLockModuleSettings } from './module-options.js';

/** The interface of the classes for `useClass` and `useExisting`. */
export interface RedisLockOptionsFactory<O extends RedisLockModuleOptions = RedisLockModuleOptions> {
  createRedisLockOptions(): O | Promise<O>;
}

/** The options of `RedisLockModule.forRootAsync`: one of `useFactory`, `useClass` and `useExisting`. */
export interface RedisLockModuleAsyncOptions<O extends RedisLockModuleOptions = RedisLockModuleOptions>
  extends RedisLockModuleExtras, Pick<ModuleMetadata, 'imports'> {
  /**
   * The providers to pass to `useFactory`.
   *
   * @allowed provider tokens
   * @default none
   */
  inject?: FactoryProvider['inject'];
  /**
   * Returns the options, given the providers of `inject`.
   *
   * @allowed a function
   * @default none
   */
  useFactory?: (...dependencies: never[]) => O | Promise<O>;
  /**
   * A class whose `createRedisLockOptions()` returns the options. Nest creates an instance for the module.
   *
   * @allowed a class that implements `RedisLockOptionsFactory`
   * @default none
   */
  useClass?: Type<RedisLockOptionsFactory<O>>;
  /**
   * An existing provider whose `createRedisLockOptions()` returns the options.
   *
   * @allowed a class that implements `RedisLockOptionsFactory`
   * @default none
   */
  useExisting?: Type<RedisLockOptionsFactory<O>>;
}

// The options of `forRootAsync`, if `O` has only options that the module knows. TypeScript looks for unknown properties
// in an object literal, but not in the result of a function.
export type OptionsOfFactory<O extends RedisLockModuleOptions> = [UnknownOption<O>] extends [never]
  ? RedisLockModuleAsyncOptions<O>
  : Omit<RedisLockModuleAsyncOptions<O>, FactoryKind> & {
      [K in FactoryKind]?: Mistake<`The factory returns an option that the module does not know: ${UnknownOption<O>}`>;
    };

type FactoryKind = 'useFactory' | 'useClass' | 'useExisting';

// The names of the unknown options, nested ones included.
type UnknownOption<O> = UnknownKey<O, RedisLockModuleSettings> | (O extends unknown ? InGroup<O, OptionGroup> : never);

// The options with nested options.
type OptionGroup = 'shutdown' | 'durability' | 'quorum';

type InGroup<O, K extends OptionGroup> = K extends keyof O
  ? `${K}.${UnknownKey<NonNullable<O[K]>, NonNullable<RedisLockModuleSettings[K]>>}`
  : never;

// The keys of any member of a union that `Known` lacks.
type UnknownKey<O, Known> = O extends unknown
  ? IsAny<O> extends true
    ? never
    : Exclude<keyof O, keyof Known> & string
  : never;

/** A call of `forRoot` or `forRootAsync`. */
interface Registration {
  readonly where: string;
  /** Nest may compare modules by their text. This makes two calls with the same options two modules. */
  readonly id: string;
}

/**
 * Records a call of `forRoot` or `forRootAsync` as a provider of the module that it creates.
 */
export function registrationProvider(name: string, method: (...args: never[]) => unknown): Provider {
  const useValue: Registration = { where: placeOfCall(method), id: randomUUID() };
  return { provide: getRedisLockRegistrationToken(name), useValue };
}

/**
 * Refuses a second registration of a name in the same application. Two services do not share their leases, and a
 * provider could get either of them.
 */
export function checkRegistrations(name: string, modules: ModulesContainer): void {
  const token = getRedisLockRegistrationToken(name);
  const places: string[] = [];
  for (const { providers } of modules.values()) {
    const registration = providers.get(token)?.instance as Registration | undefined;
    if (registration) places.push(registration.where);
  }
  if (places.length < 2) return;
  throw new InvalidLockOptionsError(
    `RedisLockModule is registered ${places.length} times as ${quote(name)} in one application: ` +
      `${places.map((place) => `at ${place}`).join(', ')}. These would be separate lock services, which do not know ` +
      'each other’s leases. Register it once, in the root module: it is global. Or export the module that forRoot ' +
      'returns as a constant, and import that. Or give each registration its own service.',
    'service',
  );
}

/** Returns the file and the line of the call, if the stack shows it. */
function placeOfCall(method: (...args: never[]) => unknown): string {
  const callSite = callSiteOf(recordOrigin(method));
  return callSite?.replace(/^.* \((.*)\)$/, '$1').trim() || 'a place that the stack does not show';
}
