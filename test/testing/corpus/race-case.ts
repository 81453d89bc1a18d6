import type { Type } from '@nestjs/common';
import type { ExploreRacesOptions } from '../../../lib/races.js';
import type { ActorOutcomes } from '../../../lib/extras/races/explore-options.js';

/** The shared state of the instances: a repository on one database. */
export interface SharedRepository {
  reset(): void;
}

/** The context of a case's actors. */
export interface RaceWorld<S, R> {
  readonly service: S;
  /** The same service in another process: what it keeps in memory is its own. */
  readonly other: S;
  /** The shared state of the instances, for the test: its calls are no points. */
  readonly repository: R;
}

/** A bug that a race shows, and the twin of the service without it. */
export interface RaceCase<S extends object, R extends SharedRepository> {
  /** As the table of the docs has it. */
  readonly bug: string;
  readonly broken: Type<S>;
  readonly mended: Type<S>;
  readonly repository: Type<R>;
  /** The methods of the repository that change nothing. */
  readonly reads: readonly (keyof R & string)[];
  /** `true` if the first argument of each call names its row. */
  readonly byRow?: boolean;
  readonly actors: Readonly<Record<string, (world: RaceWorld<S, R>) => unknown>>;
  readonly invariant: (world: RaceWorld<S, R>, outcomes: ActorOutcomes) => string | undefined;
  /** The shortest story of the broken twin. */
  readonly story: RegExp;
  readonly options?: Partial<ExploreRacesOptions<unknown>>;
}

/** A case whose types are not told apart any more. */
export type AnyRaceCase = RaceCase<object, SharedRepository>;

export function raceCase<S extends object, R extends SharedRepository>(given: RaceCase<S, R>): AnyRaceCase {
  return given as unknown as AnyRaceCase;
}

/** The number of actors that returned this value. */
export function returned(outcomes: ActorOutcomes, value: unknown): number {
  return Object.values(outcomes).filter((outcome) => outcome.value === value).length;
}
