import { type ForwardReference, type InjectionToken, Scope } from '@nestjs/common';
import 'reflect-metadata';
import { isObject } from '../../core/util/objects.js';
import type { InstanceWrapper } from '../scan.js';

/** Where decorators of Nest keep the dependencies of a class that its constructor does not tell by types. */
const OF_PARAMETERS = 'self:paramtypes';
const OF_PROPERTIES = 'self:properties_metadata';

/**
 * Finds out which providers are made for each request, also by what they depend on. It goes by declarations: Nest knows
 * it, and caches its answer, only when it has looked for all of their dependencies. Where modules have different
 * providers of one token, it counts all of them.
 */
export class RequestScope {
  readonly #byToken = new Map<InjectionToken, InstanceWrapper[]>();

  constructor(wrappers: readonly InstanceWrapper[]) {
    for (const wrapper of wrappers) {
      const others = this.#byToken.get(wrapper.token);
      if (others) others.push(wrapper);
      else this.#byToken.set(wrapper.token, [wrapper]);
    }
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
