import { areDependent } from '../schedule/access.js';
import type { Choice } from '../schedule/schedule.js';

/**
 * Which steps of a schedule have to stay before which, if the outcome is to stay the same: steps of one actor, steps
 * that depend on each other, and a step that made another one possible.
 */
export class HappensBefore {
  readonly #steps: Choice[] = [];
  /** By step: for each earlier one, whether it has to stay before. */
  readonly #before: Uint8Array[] = [];

  /** Adds the next step of the schedule. */
  add(step: Choice): void {
    const index = this.#steps.length;
    const before = new Uint8Array(index);
    for (let earlier = index - 1; earlier >= 0; earlier--) {
      if (before[earlier]) continue;
      if (earlier !== step.since && !areDependent(this.#steps[earlier]!, step)) continue;
      before[earlier] = 1;
      this.#before[earlier]!.forEach((isBefore, first) => {
        if (isBefore) before[first] = 1;
      });
    }
    this.#steps.push(step);
    this.#before.push(before);
  }

  /**
   * The earlier steps that could change places with the last one: those that depend on it, with nothing between them
   * that has to stay there.
   */
  races(): number[] {
    const last = this.#steps.length - 1;
    const step = this.#steps[last]!;
    if (step.isForced) return [];
    const before = this.#before[last]!;
    const found: number[] = [];
    for (let earlier = last - 1; earlier >= 0; earlier--) {
      if (!before[earlier] || earlier === step.since) continue;
      let isDirect = true;
      for (let between = earlier + 1; isDirect && between < last; between++) {
        isDirect = !(before[between] && this.#before[between]![earlier]);
      }
      if (isDirect) found.push(earlier);
    }
    return found;
  }

  /**
   * The steps that could be done in place of this one, on the way to the last step coming before it.
   *
   * @returns their ids
   */
  initials(earlier: number): string[] {
    const last = this.#steps.length - 1;
    const way: number[] = [];
    const ids: string[] = [];
    for (let index = earlier + 1; index <= last; index++) {
      // What has to stay behind the earlier step is not on the way, but for the last step.
      if (index < last && this.#before[index]![earlier]) continue;
      if (!way.some((first) => this.#before[index]![first])) ids.push(this.#steps[index]!.id);
      way.push(index);
    }
    return ids;
  }
}
