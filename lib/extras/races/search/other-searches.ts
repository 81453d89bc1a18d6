import { type OnDivergence, preferred, type Search, isEqual } from './order-search.js';
import type { Choice } from '../schedule/schedule.js';

/** The chance to stay with an actor that can continue. Long runs without a switch are as likely as many switches. */
const STAY = [0.2, 0.5, 0.8, 0.95];
const FAULT = 0.1;

/** Random numbers from 0 to less than 1. */
interface Chance {
  fraction(): number;
}

function pickFrom<T>(list: readonly T[], chance: Chance): T {
  return list[Math.floor(chance.fraction() * list.length)]!;
}

export class RandomSearch implements Search {
  #last: string | undefined;
  #stay: number;

  constructor(private readonly numbers: Chance) {
    this.#stay = pickFrom(STAY, numbers);
  }

  choose(choices: readonly Choice[]): Choice {
    const { numbers } = this;
    const faults = choices.filter(({ isFault }) => isFault);
    const steps = choices.filter(({ isFault }) => !isFault);
    const own = steps.filter(({ actor }) => actor === this.#last);
    const isFault = faults.length > 0 && (steps.length === 0 || numbers.fraction() < FAULT);
    const others = steps.filter(({ actor }) => actor !== this.#last);
    const stays = own.length > 0 && (others.length === 0 || numbers.fraction() < this.#stay);
    const chosen = pickFrom(isFault ? faults : stays ? own : others, numbers);
    this.#last = chosen.actor;
    return chosen;
  }

  next(): boolean {
    this.#last = undefined;
    this.#stay = pickFrom(STAY, this.numbers);
    return true;
  }
}

/** Replays one schedule by the numbers of its choices. */
export class Repetition implements Search {
  #depth = 0;

  constructor(
    private readonly numbers: readonly number[],
    private readonly diverged: (step: number) => Error,
  ) {}

  choose(choices: readonly Choice[]): Choice {
    if (choices.length === 1) return choices[0]!;
    const chosen = choices[this.numbers[this.#depth++] ?? -1];
    if (chosen === undefined) throw this.diverged(this.#depth);
    return chosen;
  }

  next(): boolean {
    return false;
  }
}

/**
 * Runs every schedule up to a number of faults and of switches from an actor that can continue. With few switches,
 * there are few schedules.
 */
export class MinimalSwitchSearch implements Search {
  readonly #path: { readonly choices: readonly Choice[]; readonly order: readonly Choice[]; next: number }[] = [];
  #depth = 0;
  #left: number;

  constructor(
    private readonly most: number,
    private readonly diverged: OnDivergence,
  ) {
    this.#left = most;
  }

  choose(choices: readonly Choice[]): Choice {
    const depth = this.#depth++;
    const last = depth > 0 ? chosenAt(this.#path[depth - 1]!) : undefined;
    let place = this.#path[depth];
    if (place === undefined) {
      const first = preferred(choices, last?.actor)!;
      const canStay = last !== undefined && first.actor === last.actor && !first.isFault;
      const others = choices.filter((each) => each !== first && (this.#left > 0 || (!canStay && !each.isFault)));
      place = { choices, order: [first, ...others], next: 0 };
      this.#path.push(place);
    } else if (!choices.every((each, index) => place!.choices[index] && isEqual(each, place!.choices[index]!))) {
      throw this.diverged(depth, place.choices, choices);
    }
    const chosen = choices.find(({ id }) => id === chosenAt(place!).id)!;
    this.#left -= costOf(chosen, choices, last?.actor);
    return chosen;
  }

  next(): boolean {
    this.#depth = 0;
    this.#left = this.most;
    for (let last = this.#path.at(-1); last !== undefined; last = this.#path.at(-1)) {
      if (++last.next < last.order.length) return true;
      this.#path.pop();
    }
    return false;
  }
}

function chosenAt({ order, next }: { order: readonly Choice[]; next: number }): Choice {
  return order[next]!;
}

/** Returns 1 for a fault, and for a switch from an actor that could have continued. */
export function costOf(chosen: Choice, choices: readonly Choice[], last: string | undefined): number {
  if (chosen.isFault) return 1;
  const couldStay = choices.some(({ actor, isFault }) => actor === last && !isFault);
  return couldStay && chosen.actor !== last ? 1 : 0;
}
