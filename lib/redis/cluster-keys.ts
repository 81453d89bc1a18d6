import { Keys } from './keys.js';
import { SLOTS, slotOf } from './topology/slot.js';

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
