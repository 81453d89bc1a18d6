import type { FactoryProvider, ModuleMetadata, Type } from '@nestjs/common';
import type { IsAny, Mistake } from '../decorators/method-types.js';
import type { RedisLockModuleExtras, RedisLockModuleOptions, RedisLockModuleSettings } from './module-options.js';

/** Implemented by the classes for `useClass` and `useExisting`. */
export interface RedisLockOptionsFactory<O extends RedisLockModuleOptions = RedisLockModuleOptions> {
  /** Returns the options of the module, or a promise of them. */
  createRedisLockOptions(): O | Promise<O>;
}

/** What `RedisLockModule.forRootAsync` takes: one of `useFactory`, `useClass` and `useExisting`. */
export interface RedisLockModuleAsyncOptions<O extends RedisLockModuleOptions = RedisLockModuleOptions>
  extends RedisLockModuleExtras, Pick<ModuleMetadata, 'imports'> {
  /**
   * The providers that `useFactory` is called with.
   *
   * @allowed provider tokens
   * @default none
   */
  inject?: FactoryProvider['inject'];
  /**
   * Returns the options of the module. It is called with the providers that `inject` names.
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
   * An existing provider whose `createRedisLockOptions()` returns the options of the module.
   *
   * @allowed a class that implements `RedisLockOptionsFactory`
   * @default none
   */
  useExisting?: Type<RedisLockOptionsFactory<O>>;
}

/**
 * The options of `forRootAsync`, if `O` has only options that the module knows. TypeScript looks for unknown properties
 * in an object literal, but not in what a function returns.
 */
export type OptionsOfFactory<O extends RedisLockModuleOptions> = [UnknownOption<O>] extends [never]
  ? RedisLockModuleAsyncOptions<O>
  : Omit<RedisLockModuleAsyncOptions<O>, FactoryKind> & {
      [K in FactoryKind]?: Mistake<`The factory returns an option that the module does not know: ${UnknownOption<O>}`>;
    };

type FactoryKind = 'useFactory' | 'useClass' | 'useExisting';

/** The names of the unknown options, also in the groups. */
type UnknownOption<O> = UnknownKey<O, RedisLockModuleSettings> | (O extends unknown ? InGroup<O, Group> : never);

/** The options that are objects of options. */
type Group = 'shutdown' | 'durability' | 'quorum';

type InGroup<O, K extends Group> = K extends keyof O
  ? `${K}.${UnknownKey<NonNullable<O[K]>, NonNullable<RedisLockModuleSettings[K]>>}`
  : never;

/** The keys of any member of a union that are not those of `Known`. */
type UnknownKey<O, Known> = O extends unknown
  ? IsAny<O> extends true
    ? never
    : Exclude<keyof O, keyof Known> & string
  : never;
