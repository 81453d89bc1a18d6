import { LockError } from '../../kernel/api/errors.js';
import { isError } from '../../kernel/util/objects.js';
import { SeededRandom } from '../../testing/fleet/seeded-random.js';
import {
  type ActorOutcome,
  type ActorOutcomes,
  type RaceActor,
  readSeed,
  type ResolvedExploreOptions,
  ScheduleRecord,
} from './explore-options.js';
import { costOf, MinimalSwitchSearch, RandomSearch, Repetition } from './search/other-searches.js';
import { OrderSearch, type Search } from './search/order-search.js';
import { type FoundRace, RaceToolError } from './schedule/race-errors.js';
import type { Actor } from './schedule/race-context.js';
import { RaceKit } from './locks/race-kit.js';
import { type Choice, REAL, Schedule, type ScheduleEnding } from './schedule/schedule.js';
import { brief, formatInOneLine } from './schedule/story.js';
import { LockBusyError, LockTimeoutError } from '../../kernel/api/busy-errors.js';

/** The schedules to run at most to shorten the story of a race. */
const MAX_TO_SHORTEN = 2_000;
/** The maximum length of an error in a reason, in characters. */
const MAX_REASON = 300;

/** The result of {@link exploreRaces}. */
export interface ExploreRacesResult {
  /** The number of schedules that ran to completion. */
  readonly schedules: number;
  /** The number of choices that were skipped, because they lead only to orders that are equivalent to others. */
  readonly pruned: number;
  /** `true` if every order that could have a different outcome was tried. */
  readonly exhausted: boolean;
  /** The race that was found, with `throws: false`; `undefined` if there was none. */
  readonly failure?: FoundRace;
}

type Failure = Pick<FoundRace, 'reason' | 'cause'>;

/** Runs schedules until one fails, or there are no more. */
export class Exploration<World> {
  #schedules = 0;

  constructor(
    private readonly setup: (kit: RaceKit) => World | Promise<World>,
    private readonly actors: readonly (readonly [string, RaceActor<World>])[],
    private readonly options: ResolvedExploreOptions<World>,
  ) {}

  async run(): Promise<ExploreRacesResult> {
    const { schedules, seed, maxSchedules } = this.options;
    if (typeof seed === 'string') return this.#repeat(seed);
    const orders = new OrderSearch(diverged);
    const most = schedules === 'all' ? maxSchedules : Math.ceil(schedules / 2);
    const first = await this.#search(orders, most);
    const { pruned } = orders;
    if (first.race) return this.#found(first.race, pruned);
    if (first.hasEnded) return { schedules: this.#schedules, pruned, exhausted: true };
    if (schedules === 'all') throw tooMany(maxSchedules);
    const { race } = await this.#search(new RandomSearch(new SeededRandom(seed)), schedules - most);
    return race ? this.#found(race, pruned) : { schedules: this.#schedules, pruned, exhausted: false };
  }

  async #repeat(text: string): Promise<ExploreRacesResult> {
    const { numbers, check } = readSeed(text);
    const changed = (step: number): RaceToolError =>
      new RaceToolError(
        'SCHEDULE_DIVERGED',
        `exploreRaces: the seed does not match. At choice ${step} it selects an actor that cannot run there. The ` +
          'actors, their race points or the setup have changed since the seed was printed, or the run depends on something that the tool does ' +
          'not control',
      );
    const run = new ScheduleRun(new Repetition(numbers, changed));
    const race = await this.#runOne(run);
    if (run.record.check !== check) throw changed(run.record.numbers.length);
    return { schedules: 1, pruned: 0, exhausted: false, ...(race && { failure: race }) };
  }

  async #search(search: Search, most: number): Promise<{ race?: FoundRace; hasEnded: boolean }> {
    for (let runs = 0; runs < most;) {
      const run = new ScheduleRun(search);
      const race = await this.#runOne(run);
      if (!run.isStopped) runs++;
      if (race) return { race, hasEnded: false };
      if (!search.next()) return { hasEnded: true };
    }
    return { hasEnded: false };
  }

  async #found(race: FoundRace, pruned: number): Promise<ExploreRacesResult> {
    const schedules = this.#schedules;
    return { schedules, pruned, exhausted: false, failure: await this.#shorten(race) };
  }

  /** Looks for a race with fewer switches: with none, then with one, and so on. */
  async #shorten(race: FoundRace): Promise<FoundRace> {
    const until = this.#schedules + MAX_TO_SHORTEN;
    for (let most = 0; most < race.switches; most++) {
      const shorter = await this.#search(new MinimalSwitchSearch(most, diverged), until - this.#schedules);
      if (shorter.race) return shorter.race;
    }
    return race;
  }

  async #runOne(run: ScheduleRun): Promise<FoundRace | undefined> {
    const { shares, maxSteps: mostSteps, patienceMs, faults = [], maxFaults: mostFaults } = this.options;
    const kit = new RaceKit();
    const schedule: Schedule = new Schedule({
      onlyNamed: shares === 'named',
      mostSteps,
      patienceMs,
      mostFaults,
      time: kit,
      afterStep: (actor) => kit.afterStep(actor),
      faults: faults.length > 0 ? () => kit.faults(faults, schedule.begunAtPoints) : undefined,
    });
    try {
      return await this.#runIn(kit, schedule, run);
    } finally {
      kit.end();
    }
  }

  async #runIn(kit: RaceKit, schedule: Schedule, run: ScheduleRun): Promise<FoundRace | undefined> {
    const world = await this.#makeWorld(kit);
    kit.begin(schedule);
    for (const [name, work] of this.actors) schedule.add(name, () => work(world));
    const ending = await schedule.run(run.choose);
    if (ending === 'stopped') return undefined;
    this.#schedules++;
    const failure = await this.#judge(schedule, ending, world, kit.deadlock);
    if (failure === undefined) return undefined;
    const steps = schedule.story(({ state, value, name }) => {
      const isReason = value === failure.cause && failure.reason.startsWith(`${name} threw `);
      if (state !== 'threw' || isReason) return undefined;
      return `ends with ${value instanceof LockError ? value.name : brief(value)}`;
    });
    const story = formatInOneLine(steps, failure.reason);
    return { ...failure, steps, story, seed: run.record.seed, switches: run.switches };
  }

  async #makeWorld(kit: RaceKit): Promise<World> {
    try {
      return await waitFor(this.setup(kit), this.options.patienceMs, neverEnds('setup'));
    } catch (error) {
      if (error instanceof RaceToolError && error.code === 'SETUP_FAILED') throw error;
      throw new RaceToolError('SETUP_FAILED', `exploreRaces: the setup failed: ${errorText(error)}`, { cause: error });
    }
  }

  async #judge(
    schedule: Schedule,
    ending: ScheduleEnding,
    world: World,
    deadlock?: string,
  ): Promise<Failure | undefined> {
    const cycle = deadlock === undefined ? undefined : `deadlock: ${deadlock}`;
    if (ending === 'stuck') return { reason: cycle ?? `no actor can continue: ${schedule.describeWaits()}` };
    if (ending === 'endless') return { reason: `the run has not ended after ${schedule.steps.length} steps` };
    const hadFault = schedule.steps.some(({ isFault }) => isFault);
    const thrower = schedule.actors.find((actor) => actor.state === 'threw' && !this.#mayThrow(actor, hadFault));
    if (cycle !== undefined && thrower?.value instanceof LockTimeoutError) {
      return { reason: cycle, cause: thrower.value };
    }
    if (thrower) return { reason: `${thrower.name} threw ${errorText(thrower.value)}`, cause: thrower.value };
    try {
      const checking = this.options.invariant(world, outcomesOf(schedule.actors));
      const found = await waitFor(checking, this.options.patienceMs, neverEnds('invariant'));
      if (found === false) return { reason: 'the invariant does not hold' };
      return typeof found === 'string' ? { reason: found } : undefined;
    } catch (error) {
      if (error instanceof RaceToolError && error.code === 'INVARIANT_STUCK') throw error;
      return { reason: reasonOf(error), cause: error };
    }
  }

  #mayThrow({ name, value }: Actor, hadFault: boolean): boolean {
    const { mayThrow } = this.options;
    if (mayThrow) return mayThrow(value, name);
    return (value instanceof LockBusyError && value.code === 'LOCK_BUSY') || (hadFault && value instanceof LockError);
  }
}

/** One schedule, chosen by a search. */
class ScheduleRun {
  readonly record = new ScheduleRecord();
  switches = 0;
  isStopped = false;
  #last: string | undefined;

  constructor(private readonly search: Search) {}

  readonly choose = (choices: readonly Choice[]): Choice | undefined => {
    const chosen = this.search.choose(choices);
    if (chosen === undefined) {
      this.isStopped = true;
      return undefined;
    }
    this.record.add(choices, chosen);
    this.switches += costOf(chosen, choices, this.#last);
    this.#last = chosen.actor;
    return chosen;
  };
}

function outcomesOf(actors: readonly Actor[]): ActorOutcomes {
  return Object.fromEntries(
    actors.map(({ name, state, value }): [string, ActorOutcome] => {
      if (state === 'threw') return [name, { status: 'threw', error: value }];
      return [name, state === 'killed' ? { status: 'killed' } : { status: 'returned', value }];
    }),
  );
}

function neverEnds(what: 'setup' | 'invariant'): (ms: number) => RaceToolError {
  const code = what === 'setup' ? 'SETUP_FAILED' : 'INVARIANT_STUCK';
  return (ms) =>
    new RaceToolError(
      code,
      `exploreRaces: the ${what} has not ended within ${ms} ms (four times \`patienceMs\`). It may wait for a lock that ` +
        'an actor still holds, or for a timer that does not fire. If it only takes long, raise `patienceMs`',
    );
}

function reasonOf(error: unknown): string {
  return isError(error) ? oneLine(error.message) || error.name : `the invariant threw ${brief(error)}`;
}

function errorText(error: unknown): string {
  return isError(error) ? oneLine(`${error.name}: ${error.message}`) : brief(error);
}

/** Removes ANSI colours, and joins the lines. */
function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  const lines = text.replace(/\u001B\[[0-9;]*m/g, '').split('\n');
  const shown = lines.map((line) => line.trim()).filter((line) => line !== '');
  return shown.join(', ').slice(0, MAX_REASON);
}

function diverged(step: number, expected: readonly Choice[], found: readonly Choice[]): RaceToolError {
  const list = (choices: readonly Choice[]): string =>
    choices.map(({ actor, text }) => `${actor} ${text}`).join(', ') || 'nothing';
  return new RaceToolError(
    'SCHEDULE_DIVERGED',
    `exploreRaces: the same order led to different steps. At step ${step + 1}, these were possible: ${list(expected)}. ` +
      `Now: ${list(found)}. The run depends on something that the tool does not control: state that setup does not create ` +
      'again, a random number, the time of day, a timer, or an answer from outside of the process',
  );
}

function tooMany(most: number): RaceToolError {
  return new RaceToolError(
    'TOO_MANY_SCHEDULES',
    `exploreRaces: found no race in the first ${most} schedules, and did not run the rest. To run all schedules, raise ` +
      "`maxSchedules`, or reduce their number: name the object of each racePoint, set `shares: 'named'` if actors share " +
      'only named objects, or use fewer actors. To run only a sample, set `schedules: 1_000`',
  );
}

/** The setup and the invariant may take this many times `patienceMs`: they may start an application. */
const TIMES = 4;
/** Turns of the event loop that ready code gets after the time limit, because the event loop may have been blocked. */
const TURNS = 5;

/**
 * Waits for the setup or the invariant.
 *
 * @param tooLate makes the error if it has not ended within this many milliseconds
 */
export async function waitFor<T>(
  working: T | Promise<T>,
  patienceMs: number,
  tooLate: (ms: number) => RaceToolError,
): Promise<T> {
  if (!(working instanceof Promise)) return working;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = async (): Promise<void> => {
      for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => REAL.setImmediate(resolve));
      reject(tooLate(TIMES * patienceMs));
    };
    timer = REAL.setTimeout(() => void giveUp(), TIMES * patienceMs);
  });
  try {
    return await Promise.race([working, late]);
  } finally {
    REAL.clearTimeout(timer);
  }
}
