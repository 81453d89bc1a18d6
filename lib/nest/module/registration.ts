import type { FactoryProvider, Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { randomUUID } from 'node:crypto';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import { getRedisLockRegistrationToken } from '../tokens.js';
import { callSiteOf, recordOrigin } from '../../core/util/call-site.js';
import { quote } from '../../core/util/quoted.js';

/** One call of `forRoot` or `forRootAsync`. */
interface Registration {
  /** Where it was called. */
  readonly where: string;
  /** Where Nest compares modules by their text, two calls with the same text are two modules all the same. */
  readonly id: string;
}

/** Notes a call among the providers of the module that it makes. @param method whose caller is meant */
export function registrationProvider(name: string, method: (...args: never[]) => unknown): Provider {
  const useValue: Registration = { where: placeOfCall(method), id: randomUUID() };
  return { provide: getRedisLockRegistrationToken(name), useValue };
}

/**
 * A factory of the lock service that first refuses a second registration of its name in the same application: two services know
 * nothing of each other's leases, and nothing tells which of them a provider gets.
 */
export function onlyRegistration<O, T>(
  name: string,
  optionsToken: string,
  create: (options: O) => T,
): Pick<FactoryProvider<T>, 'inject' | 'useFactory'> {
  return {
    inject: [ModulesContainer, optionsToken],
    useFactory: (modules: ModulesContainer, options: O) => {
      checkRegistrations(name, modules);
      return create(options);
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
      `${places.map((place) => `at ${place}`).join(', ')}. These would be separate lock services, which know nothing of each ` +
      'other’s leases. Register it once, in the root module: it is global. Or export what forRoot returns as a constant, and ' +
      'import that; or give each of them another name.',
    'name',
  );
}

/** The file and the line where a method was called, as far as the stack shows it. */
function placeOfCall(method: (...args: never[]) => unknown): string {
  const callSite = callSiteOf(recordOrigin(method));
  return callSite?.replace(/^.* \((.*)\)$/, '$1').trim() || 'a place that the stack does not show';
}
