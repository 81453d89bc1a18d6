import { flag, type OptionsOf, OptionTable, text } from '../../core/api/option-table.js';
import { ANYTHING, type Access } from './schedule/access.js';
import { currentActor } from './schedule/race-context.js';

/** What a {@link racePoint} says of the code behind it. */
export interface RacePointOptions {
  /**
   * What the code from this point to the actor's next point touches. It is a promise: that code touches nothing else
   * that other actors see. Then orders that differ only in steps on other objects count as equal, and are run once.
   *
   * @allowed text that is not empty
   * @default it may touch anything, so it is tried in every order
   */
  readonly object?: string;
  /**
   * Whether that code may change the object. Two steps that only read it can change places.
   *
   * @default true
   */
  readonly writes?: boolean;
}

export const RACE_POINT_OPTIONS = new OptionTable({
  object: text(/[^]/, 'text that is not empty'),
  writes: flag().default(true),
} satisfies OptionsOf<RacePointOptions>);

/**
 * A place in the code of an actor where another actor may come first. {@link exploreRaces} tries the orders of the
 * steps between such points. Everywhere else it resolves at once.
 *
 * @param name what the code behind it does, as the story of a race should tell it: `'read the stock'`
 * @throws InvalidLockOptionsError when an option is invalid, and a race is explored
 */
export async function racePoint(name: string, options?: RacePointOptions): Promise<void> {
  const context = currentActor();
  if (context === undefined) return;
  await context.schedule.point(context.actor, name, accessOf(name, options));
}

function accessOf(name: string, options: RacePointOptions = {}): Access {
  RACE_POINT_OPTIONS.check(`racePoint(${JSON.stringify(name)})`, options);
  const { object, writes = RACE_POINT_OPTIONS.defaults.writes } = options;
  return object === undefined ? ANYTHING : { object, writes };
}
