import type { DiscoveryService } from '@nestjs/core';
import { isObject } from '../core/util/objects.js';

/** A provider or a controller, as Nest's discovery finds it. */
export type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** All providers and controllers of the application. */
export function wrappersOf(discovery: DiscoveryService): InstanceWrapper[] {
  return [...discovery.getProviders(), ...discovery.getControllers()];
}

/** Returns the prototype of its instance, or of its class where it has no instance yet: in another scope than the default. */
export function prototypeOf({ instance, metatype }: InstanceWrapper): object | undefined {
  const prototype: unknown = isObject(instance) ? Object.getPrototypeOf(instance) : metatype?.prototype;
  return isObject(prototype) ? prototype : undefined;
}
