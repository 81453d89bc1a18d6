import { type MemoryServer, readState } from '../../../memory/memory-server.js';

/** What an actor waits for. */
interface Wait {
  readonly resource: string;
  readonly holders: readonly string[];
}

/**
 * Looks for actors that wait for each other in a circle. Their waits end by their `waitMs` only.
 *
 * @returns what each of them waits for, for the story
 */
export function findDeadlock(servers: Iterable<MemoryServer>): string | undefined {
  const waits = waitsIn(servers);
  for (const actor of waits.keys()) {
    const circle = circleFrom(actor, waits, []);
    if (circle) return circle.join('; ');
  }
  return undefined;
}

function waitsIn(servers: Iterable<MemoryServer>): Map<string, Wait[]> {
  const waits = new Map<string, Wait[]>();
  for (const server of servers) {
    for (const resource of server.locks.resources()) {
      const { holders, waiters } = readState(server, resource, '');
      const wait: Wait = { resource, holders: holders.map(({ instanceId }) => instanceId) };
      for (const { instanceId } of waiters) waits.set(instanceId, [...(waits.get(instanceId) ?? []), wait]);
    }
  }
  return waits;
}

/** @param path the actors from the first one of the circle on, each with what it waits for */
function circleFrom(
  actor: string,
  waits: ReadonlyMap<string, readonly Wait[]>,
  path: readonly (readonly [actor: string, text: string])[],
): string[] | undefined {
  for (const { resource, holders } of waits.get(actor) ?? []) {
    for (const holder of holders) {
      const further = [...path, [actor, `${actor} waits for ${resource}, which ${holder} holds`] as const];
      if (holder === further[0]![0]) return further.map(([, text]) => text);
      if (further.some(([name]) => name === holder)) continue;
      const circle = circleFrom(holder, waits, further);
      if (circle) return circle;
    }
  }
  return undefined;
}
