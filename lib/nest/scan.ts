import type { DiscoveryService } from '@nestjs/core';
import { isObject, prototypesOf } from '../kernel/util/objects.js';
import { DEFAULT_NAME } from './service-parts.js';

/** A provider or a controller, as Nest's discovery finds it. */
export type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** The classes of an application, for the checks of one lock service when the application starts. */
export class Scan {
  readonly providers: readonly InstanceWrapper[];
  readonly controllers: readonly InstanceWrapper[];
  /** The prototypes of all classes, each once. */
  readonly prototypes: ReadonlySet<object>;
  /** The same, and the prototypes of the classes that they extend. */
  readonly allPrototypes: ReadonlySet<object>;

  constructor(
    discovery: DiscoveryService,
    private readonly lockService: string,
  ) {
    this.providers = discovery.getProviders();
    this.controllers = discovery.getControllers();
    this.prototypes = new Set([...this.controllers, ...this.providers].map(prototypeOf).filter(isObject));
    this.allPrototypes = new Set([...this.prototypes].flatMap(prototypesOf));
  }

  /** Returns true for a decorator of this lock service. */
  readonly isOurs = ({ lockService = DEFAULT_NAME }: { readonly lockService?: string | undefined }): boolean =>
    lockService === this.lockService;
}

/** All providers and controllers of the application. */
export function wrappersOf(discovery: DiscoveryService): InstanceWrapper[] {
  return [...discovery.getProviders(), ...discovery.getControllers()];
}

/**
 * Returns the prototype of its instance, or of its class if it has no instance yet: in another scope than the
 * default.
 */
export function prototypeOf({ instance, metatype }: InstanceWrapper): object | undefined {
  const prototype: unknown = isObject(instance) ? Object.getPrototypeOf(instance) : metatype?.prototype;
  return isObject(prototype) ? prototype : undefined;
}
