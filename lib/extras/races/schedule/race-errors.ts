import type { StoryStep } from './story.js';

/** Reasons for which the race tool gives up. */
export type RaceToolProblem =
  | 'TOO_MANY_SCHEDULES'
  | 'SCHEDULE_DIVERGED'
  | 'SETUP_FAILED'
  | 'INVARIANT_STUCK'
  | 'OUTSIDE_AN_ACTOR'
  | 'NO_LOCK_SERVICE';

/** The race tool cannot continue. The message suggests a fix. */
export class RaceToolError extends Error {
  override readonly name = 'RaceToolError';

  /** @internal */
  constructor(
    readonly code: RaceToolProblem,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The part of {@link RaceFoundError} that describes the schedule. */
export interface FoundRace {
  /** The failure, in one line. */
  readonly reason: string;
  /** The steps of all actors, in order. */
  readonly steps: readonly StoryStep[];
  /** The steps and the reason in one line. */
  readonly story: string;
  /** Pass it as the option `seed` to replay this schedule. */
  readonly seed: string;
  /** The number of times the schedule switches from an actor that could continue to another one. */
  readonly switches: number;
  /** The value that the invariant or an actor threw. */
  readonly cause?: unknown;
}

/**
 * A race was found: in one schedule, the invariant does not hold or an actor fails. `cause` is the value that the
 * invariant or the actor threw.
 */
export class RaceFoundError extends Error implements FoundRace {
  override readonly name = 'RaceFoundError';
  readonly code = 'RACE_FOUND';
  readonly reason: string;
  readonly steps: readonly StoryStep[];
  readonly story: string;
  readonly seed: string;
  readonly switches: number;
  /** The number of schedules that ran before the race was found. */
  readonly schedules: number;

  /** @internal */
  constructor(message: string, race: FoundRace, schedules: number) {
    super(message, race.cause === undefined ? undefined : { cause: race.cause });
    this.reason = race.reason;
    this.steps = race.steps;
    this.story = race.story;
    this.seed = race.seed;
    this.switches = race.switches;
    this.schedules = schedules;
  }
}
