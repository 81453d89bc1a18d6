import { areDependent } from '../schedule/race-context.js';
import type { Choice } from '../schedule/schedule.js';

/** A place in the tree of schedules. */
interface Branching {
  readonly choices: ReadonlyMap<string, Choice>;
  /** Still to be tried here. */
  readonly wanted: Set<string>;
  /** Already tried, or leading only to schedules that are equal to others. */
  readonly asleep: Map<string, Choice>;
  chosen: Choice;
}

/** Chooses one schedule after another. */
export interface Search {
  /** Returns the choice at the next step; `undefined` if the rest is equal to a schedule that was run. */
  choose(choices: readonly Choice[]): Choice | undefined;
  /** Called at the end of a schedule. @returns whether there is another one */
  next(): boolean;
}

/** Makes the error for a schedule that took another way than before. */
export type OnDivergence = (step: number, expected: readonly Choice[], found: readonly Choice[]) => Error;

/**
 * Finds one schedule of each set of equal orders: dynamic partial order reduction with source sets (Abdulla, Aronis,
 * Jonsson, Sagonas, 2014). It tries another order only if two dependent steps followed each other directly. Sleep sets
 * skip orders that begin like one that was run, except for steps that can be swapped.
 */
export class OrderSearch implements Search {
  /** The choices that were skipped, because they lead to orders that are equal to others. */
  pruned = 0;
  readonly #path: Branching[] = [];
  #depth = 0;
  #order = new HappensBefore();

  constructor(private readonly diverged: OnDivergence) {}

  choose(choices: readonly Choice[]): Choice | undefined {
    const depth = this.#depth;
    const known = this.#path[depth];
    const chosen = known ? this.#again(known, choices) : this.#branch(choices);
    if (chosen === undefined) return undefined;
    this.#depth++;
    this.#order.add(chosen);
    this.#wantReversals();
    return chosen;
  }

  #again(branching: Branching, choices: readonly Choice[]): Choice {
    const expected = [...branching.choices.values()];
    const isSame =
      expected.length === choices.length && expected.every((each, index) => isEqual(each, choices[index]!));
    if (!isSame) throw this.diverged(this.#depth, expected, choices);
    const chosen = choices.find(({ id }) => id === branching.chosen.id)!;
    branching.chosen = chosen;
    return chosen;
  }

  #branch(choices: readonly Choice[]): Choice | undefined {
    const last = this.#path.at(-1);
    const asleep = new Map<string, Choice>();
    for (const [id, choice] of last?.asleep ?? []) if (!areDependent(choice, last!.chosen)) asleep.set(id, choice);
    const chosen = preferred(
      choices.filter(({ id }) => !asleep.has(id)),
      last?.chosen.actor,
    );
    if (chosen === undefined) {
      this.pruned++;
      return undefined;
    }
    // No schedule shows what a fault would have changed, so each is tried wherever it can happen.
    const wanted = new Set(choices.filter(({ isFault }) => isFault).map(({ id }) => id)).add(chosen.id);
    this.#path.push({ choices: new Map(choices.map((each) => [each.id, each])), wanted, asleep, chosen });
    return chosen;
  }

  #wantReversals(): void {
    for (const earlier of this.#order.races()) {
      const { wanted, choices } = this.#path[earlier]!;
      const initials = this.#order.initials(earlier);
      if (initials.some((id) => wanted.has(id))) continue;
      const possible = initials.filter((id) => choices.has(id));
      // If the tool could not see what made a step possible, it tries every order.
      const added = possible.length > 0 ? possible.slice(0, 1) : choices.keys();
      for (const id of added) wanted.add(id);
    }
  }

  next(): boolean {
    this.#depth = 0;
    this.#order = new HappensBefore();
    for (let last = this.#path.at(-1); last !== undefined; last = this.#path.at(-1)) {
      const { asleep, wanted, choices, chosen } = last;
      asleep.set(chosen.id, chosen);
      const id = [...wanted].find((each) => !asleep.has(each));
      if (id !== undefined) {
        last.chosen = choices.get(id)!;
        return true;
      }
      this.pruned += [...choices.keys()].filter((each) => !asleep.has(each)).length;
      this.#path.pop();
    }
    return false;
  }
}

/** Prefers the actor that ran last, so the first schedules have the fewest switches. */
export function preferred(choices: readonly Choice[], actor: string | undefined): Choice | undefined {
  const steps = choices.filter(({ isFault }) => !isFault);
  return steps.find((each) => each.actor === actor) ?? steps[0] ?? choices[0];
}

export function isEqual(one: Choice, other: Choice): boolean {
  return one.id === other.id && one.text === other.text && one.access.object === other.access.object;
}

/**
 * The order that must stay for the outcome to stay the same: steps of one actor, steps that depend on each other, and a
 * step that made another one possible.
 */
class HappensBefore {
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
   * Returns the earlier steps that could be swapped with the last one: those it depends on, with nothing between them
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

  /** Returns the ids of the steps that could be done in place of this one, to get the last step before it. */
  initials(earlier: number): string[] {
    const last = this.#steps.length - 1;
    const way: number[] = [];
    const ids: string[] = [];
    for (let index = earlier + 1; index <= last; index++) {
      // A step that has to stay behind the earlier one cannot lead there, except for the last step.
      if (index < last && this.#before[index]![earlier]) continue;
      if (!way.some((first) => this.#before[index]![first])) ids.push(this.#steps[index]!.id);
      way.push(index);
    }
    return ids;
  }
}
