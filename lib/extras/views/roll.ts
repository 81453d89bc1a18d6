import { LockUnavailableError } from '../../kernel/api/errors.js';
import { OTHER_GROUP } from '../../kernel/api/holder.js';
import type { LockFleet } from '../../features/fleet/core/roll/lock-fleet.js';
import { instanceOf } from '../../kernel/store/ask.js';

/** What the instance ids of programs begin with that only look: they are no instances of the application. */
export const OBSERVER_PREFIX = 'cli:';

export type Instance = LockFleet['instances'][number];

/** What the instances of the application have said, without the programs that look, too. */
export interface Roll extends Pick<
  LockFleet,
  'askedAt' | 'completeness' | 'instances' | 'silent' | 'unreadable' | 'unlisted' | 'deadlocks'
> {
  /** How many of them there are; `null` if Redis could not count them. */
  readonly asked: number | null;
  /** Whether all that are connected are known: those that have answered, and those that have not. */
  readonly knowsAll: boolean;
  /**
   * The ids of all that have an inbox, those of other databases among them: an instance may be there that hears no roll
   * call. Not set where it cannot be known.
   */
  readonly connected: ReadonlySet<string> | undefined;
}

/** @param clients all that have an inbox, as `LockClient.connected()` says */
export function rollOf(fleet: LockFleet, clients: readonly string[] | undefined): Roll {
  const { askedAt, asked, completeness, unreadable, unlisted, deadlocks } = fleet;
  const connected = clients && new Set(clients.map(instanceOf));
  const isCounted = asked !== null && fleet.instances.length + fleet.silent.length >= asked;
  const knowsAll = isCounted && unreadable === 0 && connected !== undefined;
  const isInstance = (instanceId: string): boolean => !instanceId.startsWith(OBSERVER_PREFIX);
  const instances = fleet.instances.filter(({ instanceId }) => isInstance(instanceId));
  // Who holds a lock that no instance lists is one of this database.
  const holders = unlisted.filter(({ hasAnswered, instanceId }) => !hasAnswered && connected?.has(instanceId));
  const unheard = [...fleet.silent, ...holders.map(({ instanceId }) => instanceId)];
  const silent = [...new Set(unheard)].filter(isInstance);
  const lookers = fleet.instances.length - instances.length + fleet.silent.filter((id) => !isInstance(id)).length;
  const ofApplication = asked === null ? null : Math.max(asked - lookers, instances.length);
  return {
    askedAt,
    asked: ofApplication,
    completeness,
    instances,
    silent,
    unreadable,
    unlisted,
    deadlocks,
    knowsAll,
    connected,
  };
}

/** For what can be told without the answers of the instances. @throws what is another error */
export function withoutAnswers(error: unknown): undefined {
  if (error instanceof LockUnavailableError) return undefined;
  throw error;
}

/** How many leases all instances hold, and how many calls of them wait, with those that they do not list. */
export function totalsOf({ instances }: Pick<Roll, 'instances'>): { held: number; waiting: number } {
  const unlisted = unlistedIn({ instances });
  const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);
  return {
    held: unlisted.held + sum(instances.map(({ held }) => held.length)),
    waiting: unlisted.waiting + sum(instances.map(({ waiting }) => waiting.length)),
  };
}

/** How many leases and waiting calls the instances have that their answers do not list. */
export function unlistedIn({ instances }: Pick<Roll, 'instances'>): { held: number; waiting: number } {
  const sums = { held: 0, waiting: 0 };
  for (const { more } of instances) {
    sums.held += more.held;
    sums.waiting += more.waiting;
  }
  return sums;
}

/** What the process with this id does, as far as the roll call shows it. */
export function lifeOf(instanceId: string, { instances, silent, knowsAll, connected }: Roll): InstanceLife {
  if (instances.some((each) => each.instanceId === instanceId)) return 'answers';
  if (silent.includes(instanceId) || connected?.has(instanceId)) return 'silent';
  return knowsAll ? 'gone' : 'unheard';
}

/**
 * `answers`: it lives. `silent`: it is connected, and does not answer. `gone`: no process of that id is connected, so
 * it is dead, or cut off from messages. `unheard`: it has not answered, and whether it is connected is not known.
 */
export type InstanceLife = 'answers' | 'silent' | 'gone' | 'unheard';

/** The name of a group. The group of everything else has none. */
export function groupName(group: string): string {
  return group === OTHER_GROUP ? 'everything else' : group;
}

/** The group of a call and its place in the code. The group of everything else has no name. */
export function workOf({ group, callSite }: { readonly group: string; readonly callSite?: string }): string {
  return [group === OTHER_GROUP ? undefined : group, callSite].filter(Boolean).join(' ');
}
