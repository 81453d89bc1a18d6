import { SLOTS, slotOf } from './topology/slot.js';

/**
 * A resource as it stands inside a key: percent-encoded where it has to be. Braces would move the hash tag of a cluster,
 * control characters would garble an operator's terminal, and `%` is encoded so that no two resources come out alike.
 */
export function encodeResource(resource: string): string {
  return resource.replace(/[%{}\u0000-\u001f\u007f]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`;
  });
}

/** The resource that {@link encodeResource} encoded. */
export function decodeResource(encoded: string): string {
  return encoded.replace(/%([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}

/** The queue of a lock, by its key. */
export function waitersOf(lockKey: string): string {
  return `${lockKey}:waiters`;
}

/**
 * The names of everything in Redis. No resource can name another one's keys: what it contributes stands in braces, which
 * it cannot contain, and everything else stands outside of them.
 */
export class Keys {
  constructor(readonly prefix: string) {}

  /** The lock: a string (exclusive) or a hash (other modes). */
  lock(resource: string): string {
    return `${this.prefix}:{${encodeResource(resource)}}`;
  }

  /** Those who wait for the resource, in order. */
  waiters(resource: string): string {
    return waitersOf(this.lock(resource));
  }

  /** A pattern for SCAN that matches the keys of the resources whose names begin like this, and of no other. */
  matching(resourcePrefix: string): string {
    return `${`${this.prefix}:{${encodeResource(resourcePrefix)}`.replace(/[*?[\]\\]/g, '\\$&')}*`;
  }

  /** The resource of a lock or a queue, by its key; nothing for other keys. */
  resourceOf(key: string): string | undefined {
    const [, encoded] = /\{([^{}]*)\}(?::waiters)?$/s.exec(key) ?? [];
    return encoded === undefined ? undefined : decodeResource(encoded);
  }

  /** The claim of one tick of a singleton job, in the slot of the job's lock. */
  tick(resource: string, tick: string): string {
    return `${this.lock(resource)}:tick:${encodeResource(tick)}`;
  }

  /** The last tick of a singleton job that was claimed: its time, in milliseconds since the Unix epoch. */
  lastTick(resource: string): string {
    return `${this.lock(resource)}:last-tick`;
  }

  /** A latch: a hash of its count and what was counted. */
  latch(name: string): string {
    return `${this.lock(name)}:latch`;
  }

  /** The clients that wait for a latch, each with the end of its place. */
  latchWaiters(name: string): string {
    return `${this.latch(name)}:waiters`;
  }

  /**
   * The last fencing tick: one for all resources, so that no counter is left behind for each of them.
   *
   * @param _lockKey of the resource whose leases it numbers
   */
  fence(_lockKey: string): string {
    return `${this.prefix}:fence`;
  }

  /** The channel on which a client learns of its grants. */
  inbox(clientId: string): string {
    return `${this.prefix}:inbox:${clientId}`;
  }
}

/** By slot, a short text that hashes to it. The same on every instance. */
const tags: string[] = [];
let found = 0;
let candidates = 0;

/** The first text, counting up, whose slot it is. */
function tagOf(slot: number): string {
  while (tags[slot] === undefined && found < SLOTS) {
    const candidate = (candidates++).toString(36);
    const own = slotOf(candidate);
    if (tags[own] !== undefined) continue;
    tags[own] = candidate;
    found++;
  }
  return tags[slot]!;
}

/** The names of everything in a cluster, where the keys of one script are in one slot: there is a fence for each slot in use. */
export class ClusterKeys extends Keys {
  override fence(lockKey: string): string {
    return `${this.prefix}:{${tagOf(slotOf(lockKey))}}:fence`;
  }
}
