import { createHash } from 'node:crypto';
import { checkOneOf, Option, type OptionsOf, OptionTable, wrongValue } from '../../kernel/api/validation.js';
import type { FaultKind } from './locks/race-kit.js';
import type { Choice } from './schedule/schedule.js';

/** One of the processes, requests or jobs that run concurrently. */
export type RaceActor<World> = (world: World) => unknown;

/** The outcome of one actor in one schedule. `killed`: a fault stopped it. */
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
   * Checks what must be true after each schedule, once all actors have ended. To report a failure, throw an error, or
   * return `false` or a description of the problem.
   */
  readonly invariant: (world: World, outcomes: ActorOutcomes) => unknown;
  /**
   * The number of schedules (orders of the actors' steps) to run. `'all'` runs one of each set of equivalent orders.
   * With a number, the first half of the schedules is systematic, and the search ends if it covers all orders; the
   * second half is random (see `seed`).
   *
   * @allowed `'all'`, or 1 or more
   * @default 'all'
   */
  readonly schedules?: 'all' | number;
  /**
   * A number seeds the random schedules. The `seed` of a {@link RaceFoundError} replays the schedule that failed.
   *
   * @allowed a whole number, or the `seed` of a `RaceFoundError`
   * @default 1
   */
  readonly seed?: number | string;
  /**
   * The faults to inject, at every point of every actor in turn. `'kill'`: the actor stops, as if its process had died.
   * `'stall'`: the actor is paused until its leases have expired. `'lose'`: the actor loses its locks, and is notified.
   *
   * @allowed an array of `'kill'`, `'stall'` and `'lose'`
   * @default none
   */
  readonly faults?: readonly FaultKind[];
  /**
   * The maximum number of faults per schedule.
   *
   * @allowed 1 or more
   * @default 1
   */
  readonly maxFaults?: number;
  /**
   * The objects that actors share. With `'anything'`, code that names no object (before an actor's first point, and
   * after a lock call) may touch any of them, so the tool tries that code in every order. With `'named'`, you
   * promise that actors share only locks, `raced` objects and the objects that a `racePoint` names. Then far fewer
   * orders are tried, but a wrong promise hides races.
   *
   * @default 'anything'
   */
  readonly shares?: 'anything' | 'named';
  /**
   * Returns true if an actor may end with this error; the invariant then gets the error in `outcomes`. Every other
   * error counts as a race.
   *
   * @default allows a `LockBusyError` with the code `LOCK_BUSY` and, after a fault, every error of this package
   */
  readonly mayThrow?: (error: unknown, actor: string) => boolean;
  /**
   * The maximum number of schedules with `schedules: 'all'`. If a search needs more, it fails.
   *
   * @allowed 1 or more
   * @default 20000
   */
  readonly maxSchedules?: number;
  /**
   * The maximum number of steps in a schedule. A longer schedule counts as a race, because it may never end.
   *
   * @allowed 1 or more
   * @default 500
   */
  readonly maxSteps?: number;
  /**
   * Time to wait for operations outside the tool's control, such as reading a file or your own timer. If no actor can
   * continue after that, the schedule counts as a race.
   *
   * @allowed 1 ms or more
   * @default 1000
   */
  readonly patienceMs?: number;
  /**
   * `true` throws a {@link RaceFoundError} if a race is found. `false` returns the race as `failure` of the result.
   *
   * @default true
   */
  readonly throws?: boolean;
}

const FAULTS: readonly FaultKind[] = ['kill', 'stall', 'lose'];

type Options = ExploreRacesOptions<object>;

export const EXPLORE_OPTIONS = new OptionTable({
  invariant: Option.callback<Options['invariant']>().required(),
  schedules: Option.checked<'all' | number>(checkSchedules).default('all'),
  seed: Option.checked<number | string>(checkSeed).default(1),
  faults: Option.checked<readonly FaultKind[]>(checkFaults),
  maxFaults: Option.atLeast(1, 'faults').default(1),
  shares: Option.oneOf<'anything' | 'named'>(['anything', 'named']).default('anything'),
  mayThrow: Option.callback<NonNullable<Options['mayThrow']>>(),
  maxSchedules: Option.atLeast(1, 'schedules').default(20_000),
  maxSteps: Option.atLeast(1, 'steps').default(500),
  patienceMs: Option.milliseconds(1).default(1_000),
  throws: Option.flag().default(true),
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
