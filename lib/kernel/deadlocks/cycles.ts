import type { LockMode } from '../api/lock-mode.js';
import type { DeadlockedCall } from '../api/busy-errors.js';

/**
 * The maximum number of visited calls, counted once for each path to them: some ten milliseconds. With so many in a
 * cycle, a deadlock is one of many problems.
 */
const MAX_LOOKS = 100_000;
const MAX_DEEP = 32;

/** A call that waits for a lock while it holds others. */
export interface NestedWait {
  readonly instanceId: string;
  readonly isThisProcess: boolean;
  readonly group: string;
  readonly resource: string;
  readonly mode: LockMode;
  readonly holds: readonly { readonly resource: string; readonly mode?: LockMode | undefined }[];
  readonly callSite?: string | undefined;
}

/**
 * Finds the shortest cycle of calls that a call waits in: each waits for a lock of the next one, and the last one for
 * a lock of the first one. Waits for permits of a semaphore are not followed, whose other holders may give theirs back;
 * nor is a reader behind a reader.
 *
 * @param waitsFor the calls that wait for a resource and hold others
 * @param looks how many calls may be looked at, which several searches can share
 * @returns the cycle, which begins with the call; empty where none is found
 */
export function findCycle<W extends NestedWait>(
  own: W,
  waitsFor: (resource: string) => Iterable<W>,
  looks = { left: MAX_LOOKS },
): readonly W[] {
  const paths: (readonly W[])[] = [[own]];
  const seen = new Set([own]);
  for (const path of paths) {
    if (path.length >= MAX_DEEP) return [];
    for (const hold of path.at(-1)!.holds) {
      for (const other of waitsFor(hold.resource)) {
        if (--looks.left < 0) return [];
        if (seen.has(other) || !isInTheWay(hold, other)) continue;
        if (other.holds.some((each) => each.resource === own.resource && isInTheWay(each, own))) {
          return [own, other, ...path.slice(1).reverse()];
        }
        seen.add(other);
        paths.push([...path, other]);
      }
    }
  }
  return [];
}

export function findCycles<W extends NestedWait>(waitsFor: ReadonlyMap<string, readonly W[]>): (readonly W[])[] {
  const found = new Set<W>();
  const looks = { left: MAX_LOOKS };
  return [...waitsFor.values()].flat().flatMap((wait) => {
    if (found.has(wait)) return [];
    const cycle = findCycle(wait, (resource) => waitsFor.get(resource) ?? [], looks);
    for (const each of cycle) found.add(each);
    return cycle.length === 0 ? [] : [cycle];
  });
}

export function byResource<W extends NestedWait>(waits: readonly W[]): ReadonlyMap<string, readonly W[]> {
  const found = new Map<string, W[]>();
  for (const wait of waits) {
    const others = found.get(wait.resource);
    if (others === undefined) found.set(wait.resource, [wait]);
    else others.push(wait);
  }
  return found;
}

function isInTheWay({ mode }: NestedWait['holds'][number], wait: NestedWait): boolean {
  if (mode === 'semaphore' || wait.mode === 'semaphore') return false;
  return wait.mode !== 'read' || (mode !== undefined && mode !== 'read');
}

/** Describes a cycle for the error of the call with this index in it. */
export function deadlockedCalls(cycle: readonly NestedWait[], index = 0): readonly DeadlockedCall[] {
  const turned = [...cycle.slice(index), ...cycle.slice(0, index)];
  const calls = turned.map(({ instanceId, isThisProcess, group, resource, callSite }, at) => {
    const holds = turned.at(at - 1)!.resource;
    const site = callSite !== undefined && { callSite };
    return Object.freeze({ instanceId, isThisProcess, group, holds, wants: resource, ...site });
  });
  return Object.freeze(calls);
}
