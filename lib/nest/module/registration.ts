import type { FactoryProvider, Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { randomUUID } from 'node:crypto';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { TestStores } from '../test-stores.js';
import { getRedisLockRegistrationToken, TEST_STORES } from '../tokens.js';
import { callSiteOf, recordOrigin } from '../../core/util/call-site.js';
import { quote } from '../../core/util/quoted.js';

/** A call of `forRoot` or `forRootAsync`. */
interface Registration {
  /** Where it was called. */
  readonly where: string;
  /** Nest may compare modules by their text. This makes two calls with the same options two modules. */
  readonly id: string;
}

/**
 * Records a call of `forRoot` or `forRootAsync` as a provider of the module that it creates.
 *
 * @param method the method that was called
 */
export function registrationProvider(name: string, method: (...args: never[]) => unknown): Provider {
  const useValue: Registration = { where: placeOfCall(method), id: randomUUID() };
  return { provide: getRedisLockRegistrationToken(name), useValue };
}

/**
 * Returns a factory of the lock service that refuses a second registration of its name in the same application. Two
 * services do not know each other's leases, and a provider could get either of them.
 */
export function onlyRegistration<O, T>(
  name: string,
  optionsToken: string,
  create: (options: O, name: string, testStores: TestStores | null) => T,
): Pick<FactoryProvider<T>, 'inject' | 'useFactory'> {
  return {
    inject: [ModulesContainer, optionsToken, TEST_STORES],
    useFactory: (modules: ModulesContainer, options: O, testStores: TestStores | null) => {
      checkRegistrations(name, modules);
      return create(options, name, testStores);
    },
  };
}

/** @throws InvalidLockOptionsError */
function checkRegistrations(name: string, modules: ModulesContainer): void {
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
      'returns as a constant, and import that. Or give each registration its own name.',
    'name',
  );
}

/** The file and the line where a method was called, as far as the stack shows it. */
function placeOfCall(method: (...args: never[]) => unknown): string {
  const callSite = callSiteOf(recordOrigin(method));
  return callSite?.replace(/^.* \((.*)\)$/, '$1').trim() || 'a place that the stack does not show';
}
