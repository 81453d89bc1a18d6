import 'reflect-metadata';
import { type ForwardReference, type InjectionToken, Scope } from '@nestjs/common';
import type { DiscoveryService } from '@nestjs/core';
import { entryOf, isObject, prototypesOf } from '../kernel/util/objects.js';
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

/**
 * The metadata in which decorators of Nest keep the dependencies of a class that its constructor does not declare by
 * types.
 */
const OF_PARAMETERS = 'self:paramtypes';
const OF_PROPERTIES = 'self:properties_metadata';

/**
 * Finds the providers that are made for each request, also by their dependencies. It goes by declarations: Nest knows
 * it, and caches its answer, only when it has looked for all of their dependencies. If modules have different providers
 * of one token, it counts all of them.
 */
export class RequestScope {
  readonly #byToken = new Map<InjectionToken, InstanceWrapper[]>();

  constructor(wrappers: readonly InstanceWrapper[]) {
    for (const wrapper of wrappers) entryOf(this.#byToken, wrapper.token, () => []).push(wrapper);
  }

  has(wrapper: InstanceWrapper): boolean {
    const reached = new Set([wrapper]);
    for (const each of reached) {
      if (each.scope === Scope.REQUEST) return true;
      for (const token of dependenciesOf(each)) {
        for (const found of this.#byToken.get(token) ?? []) reached.add(found);
      }
    }
    return false;
  }
}

function dependenciesOf({ inject, metatype }: InstanceWrapper): InjectionToken[] {
  if (inject) return inject.map((each) => tokenOf(isObject(each) && 'token' in each ? each.token : each));
  if (typeof metatype !== 'function') return [];
  const declared = (key: string): unknown[] => (Reflect.getMetadata(key, metatype) as unknown[] | undefined) ?? [];
  return [
    ...declared('design:paramtypes'),
    ...declared(OF_PARAMETERS).map((each) => (each as { readonly param: unknown }).param),
    ...declared(OF_PROPERTIES).map((each) => (each as { readonly type: unknown }).type),
  ].map(tokenOf);
}

function tokenOf(dependency: unknown): InjectionToken {
  const isForward = isObject(dependency) && 'forwardRef' in dependency;
  return (isForward ? (dependency as ForwardReference).forwardRef() : dependency) as InjectionToken;
}
