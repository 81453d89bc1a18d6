import { OTHER_GROUP } from '../../../../kernel/api/holder.js';
import { type BlockingGroup, UNKNOWN_GROUP } from './blockers.js';

/**
 * The maximum number of stretches of one resource. A call that has waited through more of them has waited for too many
 * to name.
 */
const MAX_STRETCHES = 256;

const UNKNOWN: BlockingGroup = { group: UNKNOWN_GROUP };
const TOO_MANY: readonly BlockingGroup[] = [{ group: OTHER_GROUP }];

/** Which groups held one resource, and when, for as long as calls of this process wait for it. */
export class WaitTimeline {
  waiting = 0;
  /** The token of the one holder, if that is a lease of this process. */
  ownToken: number | undefined;
  /** The holders, each from one moment on. */
  readonly #stretches: { readonly from: number; readonly holders: readonly BlockingGroup[] }[] = [];
  /** When the last holders stopped holding it, if that is known. */
  #endedAt: number | undefined;

  /** These have held the resource since then. A time before the last change counts as the time of that change. */
  heldBy(holders: readonly BlockingGroup[], since: number): void {
    const stretches = this.#stretches;
    const last = stretches.at(-1);
    const from = last ? Math.max(this.#endedAt ?? since, last.from) : since;
    this.#endedAt = undefined;
    if (last?.from === from) stretches.pop();
    const before = stretches.at(-1);
    if (before && areSame(before.holders, holders)) return;
    stretches.push({ from, holders });
    if (stretches.length > MAX_STRETCHES) {
      stretches.splice(0, MAX_STRETCHES / 2, { from: stretches[0]!.from, holders: TOO_MANY });
    }
  }

  /**
   * The holders have ended. The time until the next ones are known counts for those: the next one in the queue is
   * granted at once, and Redis names it a moment later.
   */
  ended(at: number): void {
    this.#endedAt ??= at;
  }

  /**
   * Which holders a call has waited for that began to wait at `startedAt`. The parts add up to its whole wait. If several
   * hold the resource at the same time, each of them counts for an equal part.
   */
  share(startedAt: number, endedAt: number): readonly (readonly [BlockingGroup, number])[] {
    const parts: [BlockingGroup, number][] = [];
    const add = (holder: BlockingGroup, ms: number): void => {
      const known = parts.find(([other]) => isSame(other, holder));
      if (known) known[1] += ms;
      else parts.push([holder, ms]);
    };
    let until = endedAt;
    for (let index = this.#stretches.length - 1; index >= 0 && until > startedAt; index--) {
      const { from, holders } = this.#stretches[index]!;
      if (from >= until) continue;
      // The first ones that are known count for the time before them as well: an answer comes a moment after the question.
      const begin = index === 0 ? startedAt : Math.max(from, startedAt);
      for (const holder of holders) add(holder, (until - begin) / holders.length);
      until = begin;
    }
    if (parts.length === 0) add(this.#stretches[0]?.holders[0] ?? UNKNOWN, Math.max(0, until - startedAt));
    return parts;
  }
}

function areSame(some: readonly BlockingGroup[], others: readonly BlockingGroup[]): boolean {
  return some.length === others.length && some.every((holder, index) => isSame(holder, others[index]!));
}

function isSame(one: BlockingGroup, other: BlockingGroup): boolean {
  return one.group === other.group && one.instanceId === other.instanceId;
}
