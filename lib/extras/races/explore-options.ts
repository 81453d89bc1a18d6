import { createHash } from 'node:crypto';
import {
  atLeast,
  callback,
  checked,
  checkOneOf,
  flag,
  milliseconds,
  oneOf,
  type OptionsOf,
  OptionTable,
  wrongValue,
} from '../../kernel/api/validation.js';
import type { FaultKind } from './locks/race-kit.js';
import type { Choice } from './schedule/schedule.js';

/** One of the processes, requests or jobs that run at the same time. */
export type RaceActor<World> = (world: World) => unknown;

/** The way an actor of a schedule ended. `killed` by a fault. */
export interface ActorOutcome {
  readonly status: 'returned' | 'threw' | 'killed';
  readonly value?: unknown;
  readonly error?: unknown;
}

/** The outcomes of the actors, by name. */
export type ActorOutcomes = Readonly<Record<string, ActorOutcome>>;

/** Options of {@link exploreRaces}. */
export interface ExploreRacesOptions<World> {
  /**
   * Checks what must be true once all actors of a schedule have ended. Fails by throwing, or by returning `false` or a
   * text that describes the problem.
   */
  readonly invariant: (world: World, outcomes: ActorOutcomes) => unknown;
  /**
   * The number of schedules to run. `'all'` runs one of each set of equivalent orders. With a number, the first half
   * tries orders systematically, and ends the search if that covers all of them; the second half tries random orders
   * (see `seed`).
   *
   * @allowed `'all'`, or 1 and more
   * @default 'all'
   */
  readonly schedules?: 'all' | number;
  /**
   * A number seeds the random schedules. The text of a {@link RaceFoundError} replays that schedule.
   *
   * @allowed a whole number, or the text of a failure
   * @default 1
   */
  readonly seed?: number | string;
  /**
   * The faults to inject, at every point of every actor in turn. `'kill'`: the actor stops, as if its process died.
   * `'stall'`: it is paused until its leases have expired. `'lose'`: its locks are lost, and it is notified.
   *
   * @allowed a list of `'kill'`, `'stall'`, `'lose'`
   * @default none
   */
  readonly faults?: readonly FaultKind[];
  /**
   * The maximum number of faults per schedule.
   *
   * @allowed 1 and more
   * @default 1
   */
  readonly maxFaults?: number;
  /**
   * The objects that code between unnamed points may touch: the code before an actor's first point, and after a lock
   * call. `'anything'` tries such code in every order. `'named'` promises that actors only share locks, `raced` objects
   * and what a `racePoint` names, which leaves far fewer orders. If the promise is wrong, races are missed.
   *
   * @default 'anything'
   */
  readonly shares?: 'anything' | 'named';
  /**
   * Returns true if an actor may end with this error. The invariant gets it as an outcome; every other error counts as
   * a race.
   *
   * @default a `LockBusyError` with the code `LOCK_BUSY`, and every error of this package once a fault has happened
   */
  readonly mayThrow?: (error: unknown, actor: string) => boolean;
  /**
   * The maximum number of schedules with `schedules: 'all'`.
   *
   * @allowed 1 and more
   * @default 20000
   */
  readonly maxSchedules?: number;
  /**
   * The maximum number of steps in a schedule. A longer one counts as a race, because it may never end.
   *
   * @allowed 1 and more
   * @default 500
   */
  readonly maxSteps?: number;
  /**
   * The time to wait for code outside the tool's control, such as a file or your own timer. If no actor moves for this
   * long, the schedule is stuck.
   *
   * @allowed 1 ms and more
   * @default 1000
   */
  readonly patienceMs?: number;
  /**
   * `true` throws a race as a {@link RaceFoundError}. Otherwise it is the `failure` of the result.
   *
   * @default true
   */
  readonly throws?: boolean;
}

const FAULTS: readonly FaultKind[] = ['kill', 'stall', 'lose'];

type Options = ExploreRacesOptions<object>;

export const EXPLORE_OPTIONS = new OptionTable({
  invariant: callback<Options['invariant']>().required(),
  schedules: checked<'all' | number>(checkSchedules).default('all'),
  seed: checked<number | string>(checkSeed).default(1),
  faults: checked<readonly FaultKind[]>(checkFaults),
  maxFaults: atLeast(1, 'faults').default(1),
  shares: oneOf<'anything' | 'named'>(['anything', 'named']).default('anything'),
  mayThrow: callback<NonNullable<Options['mayThrow']>>(),
  maxSchedules: atLeast(1, 'schedules').default(20_000),
  maxSteps: atLeast(1, 'steps').default(500),
  patienceMs: milliseconds(1).default(1_000),
  throws: flag().default(true),
} satisfies OptionsOf<Options>);

export function resolveExploreOptions<World>(options: ExploreRacesOptions<World>) {
  EXPLORE_OPTIONS.check('the third argument of exploreRaces', options);
  return EXPLORE_OPTIONS.filled(options);
}

export type ResolvedExploreOptions<World> = ReturnType<typeof resolveExploreOptions<World>>;

function checkSchedules(option: string, value: unknown): void {
  if (value === 'all' || (Number.isSafeInteger(value) && (value as number) >= 1)) return;
  throw wrongValue(option, "'all', or an integer of 1 or more", value);
}

function checkSeed(option: string, value: unknown): void {
  if (typeof value === 'string') readSeed(value);
  else if (!Number.isSafeInteger(value)) {
    throw wrongValue(option, 'an integer, or the `seed` text of a RaceFoundError', value);
  }
}

function checkFaults(option: string, value: unknown): void {
  if (!Array.isArray(value))
    throw wrongValue(option, `an array of ${FAULTS.map((kind) => `'${kind}'`).join(', ')}`, value);
  value.forEach((kind, index) => checkOneOf(`${option}[${index}]`, kind, FAULTS));
}

/** Records the schedule that runs, so that it can be replayed. */
export class ScheduleRecord {
  readonly numbers: number[] = [];
  readonly #names: string[] = [];

  add(choices: readonly Choice[], chosen: Choice): void {
    if (choices.length > 1) this.numbers.push(choices.indexOf(chosen));
    this.#names.push(`${chosen.id} ${chosen.text}`);
  }

  get check(): string {
    return createHash('sha1').update(this.#names.join('\n')).digest('hex').slice(0, 6);
  }

  get seed(): string {
    return `${this.numbers.map((number) => number.toString(36)).join('.')}-${this.check}`;
  }
}

/**
 * Parses the chosen numbers of a schedule, one for each step with a choice, and a checksum of the names of its steps.
 */
export function readSeed(text: string) {
  const [, digits, check] = /^([0-9a-z.]*)-([0-9a-f]{6})$/.exec(text) ?? [];
  if (digits === undefined || check === undefined) {
    throw wrongValue('seed', 'an integer, or the `seed` text of a RaceFoundError', text);
  }
  return { numbers: digits === '' ? [] : digits.split('.').map((digit) => parseInt(digit, 36)), check };
}
