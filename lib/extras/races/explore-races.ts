import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import { checkFunction } from '../../kernel/api/validation.js';
import { type ExploreRacesOptions, type RaceActor, resolveExploreOptions } from './explore-options.js';
import { Exploration, type ExploreRacesResult } from './exploration.js';
import { RaceFoundError, type FoundRace } from './schedule/race-errors.js';
import type { RaceKit } from './locks/race-kit.js';
import { formatLines } from './schedule/story.js';

/**
 * Looks for a race: runs the actors repeatedly, each time in a different order, and checks the invariant after each
 * run. Only one actor runs at a time, from one point to the next. Points are calls of {@link racePoint}, calls of
 * {@link raced} objects, and the commands and messages of the {@link RaceKit}'s lock services. Other awaits run in
 * their usual order.
 *
 * @param setup returns the state that the actors share. It is called before each schedule and must start from a clean
 *   state. Its argument provides the locks of the schedule
 * @param actors the functions that run at the same time. Actors of a list are called A, B, C; those in an object by
 *   their keys
 * @throws RaceFoundError with the shortest failing schedule that it finds
 * @throws RaceToolError if there are more schedules than `maxSchedules`, or if the same order does not always lead to
 *   the same steps
 * @throws InvalidLockOptionsError if an argument is invalid
 */
export async function exploreRaces<World>(
  setup: (kit: RaceKit) => World | Promise<World>,
  actors: readonly RaceActor<World>[] | Readonly<Record<string, RaceActor<World>>>,
  options: ExploreRacesOptions<World>,
): Promise<ExploreRacesResult> {
  const resolved = resolveExploreOptions(options);
  checkFunction('the setup of exploreRaces', setup);
  const result = await new Exploration(setup, named(actors), resolved).run();
  const { failure, schedules } = result;
  if (failure === undefined || !resolved.throws) return result;
  throw new RaceFoundError(messageOf(failure, schedules), failure, schedules);
}

function named<World>(
  actors: readonly RaceActor<World>[] | Readonly<Record<string, RaceActor<World>>>,
): [string, RaceActor<World>][] {
  const list: [string, RaceActor<World>][] = Array.isArray(actors)
    ? actors.map((actor: RaceActor<World>, index) => [letter(index), actor])
    : Object.entries(actors ?? {});
  if (list.length === 0) {
    throw new InvalidLockOptionsError('exploreRaces needs at least one actor, as a list or as an object.', 'actors');
  }
  for (const [name, actor] of list) checkFunction(`actor ${name} of exploreRaces`, actor);
  return list;
}

/** A, B, ... Z, A1, B1, ... */
function letter(index: number): string {
  const round = Math.floor(index / 26);
  return String.fromCharCode(65 + (index % 26)) + (round > 0 ? String(round) : '');
}

function messageOf({ reason, steps, switches, seed }: FoundRace, schedules: number): string {
  const story = formatLines(steps);
  const order =
    switches === 0
      ? 'The run fails even if each actor runs until it waits or ends, so the order is not the cause.'
      : `The race needs ${switches} ${switches === 1 ? 'switch' : 'switches'} between actors.`;
  const found = `Found in ${schedules} ${schedules === 1 ? 'schedule' : 'schedules'}.`;
  return `${reason}\n${story}\n${order} ${found} To replay it: seed: '${seed}'`;
}
