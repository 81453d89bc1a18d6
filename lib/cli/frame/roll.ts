import { LockUnavailableError } from '../../core/api/errors.js';
import { OTHER_GROUP } from '../../core/api/label.js';
import type { FleetOptions, LockFleet } from '../../core/fleet/lock-fleet.js';
import { instanceOf } from '../../core/store/ask.js';
import { plainOrQuoted, quoteSome } from '../../core/util/quoted.js';
import type { Output } from './output.js';
import { CLI_PREFIX, type Session } from './session.js';

/** How long instances may take to answer. It ends sooner where all have answered. */
const ROLL_MS = 1_000;

export type Instance = LockFleet['instances'][number];

/** What the instances of the application have said, without the command lines that look, too. */
export interface Roll extends Pick<
  LockFleet,
  'askedAt' | 'completeness' | 'instances' | 'silent' | 'unreadable' | 'unlisted' | 'deadlocks'
> {
  /** Whether all that are connected are known: those that have answered, and those that have not. */
  readonly knowsAll: boolean;
  /**
   * The ids of all that have an inbox, those of other databases among them: an instance may be there that hears no roll
   * call. Not set where it cannot be known.
   */
  readonly connected: ReadonlySet<string> | undefined;
}

/** Asks all instances. @throws LockUnavailableError */
export async function callRoll({ client, store }: Session, options: FleetOptions = {}): Promise<Roll> {
  const fleet = await client.fleet({ timeoutMs: ROLL_MS, ...options });
  const { askedAt, asked, completeness, unreadable, unlisted, deadlocks } = fleet;
  const clients = await store.rollCalls.connected();
  const connected = clients && new Set(clients.map(instanceOf));
  const isCounted = asked !== null && fleet.instances.length + fleet.silent.length >= asked;
  const knowsAll = isCounted && unreadable === 0 && connected !== undefined;
  const isInstance = (instanceId: string): boolean => !instanceId.startsWith(CLI_PREFIX);
  const instances = fleet.instances.filter(({ instanceId }) => isInstance(instanceId));
  // Who holds a lock that no instance lists is one of this database.
  const holders = unlisted.filter(({ hasAnswered, instanceId }) => !hasAnswered && connected?.has(instanceId));
  const unheard = [...fleet.silent, ...holders.map(({ instanceId }) => instanceId)];
  const silent = [...new Set(unheard)].filter(isInstance);
  return { askedAt, completeness, instances, silent, unreadable, unlisted, deadlocks, knowsAll, connected };
}

/**
 * Tells which part of an answer is missing.
 *
 * @param hint what to do where not all leases are listed; `null` where they were found in another way
 * @returns whether any is
 */
export function tellMissing(
  { instances, silent, unreadable }: Roll,
  output: Pick<Output, 'note'>,
  hint: string | null = '',
): boolean {
  const lines: string[] = [];
  if (silent.length > 0) {
    lines.push(`Connected, and silent (frozen, too busy, deaf or of an older version): ${quoteSome(silent, 5)}.`);
  }
  if (unreadable > 0) lines.push(`${unreadable} answers could not be read: of a newer version, or forged.`);
  const long = instances.filter(({ more }) => more.held + more.waiting > 0);
  if (long.length > 0 && hint !== null) {
    const some = long.slice(0, 3).map(({ instanceId, more }) => {
      return `${plainOrQuoted(instanceId)} (${more.held} held, ${more.waiting} waiting)`;
    });
    lines.push(
      `Not all of what they have is listed: ${some.join(', ')}${long.length > 3 ? ' and others' : ''}.${hint}`,
    );
  }
  lines.forEach((line) => output.note(line));
  return lines.length > 0;
}

/** For what can be told without the answers of the instances. @throws what is another error */
export function withoutAnswers(error: unknown): undefined {
  if (error instanceof LockUnavailableError) return undefined;
  throw error;
}

/** How many leases all instances hold, and how many calls of them wait, with those that they do not list. */
export function totalsOf({ instances }: Pick<Roll, 'instances'>): { held: number; waiting: number } {
  const sum = (numbers: number[]): number => numbers.reduce((a, b) => a + b, 0);
  return {
    held: sum(instances.map(({ held, more }) => held.length + more.held)),
    waiting: sum(instances.map(({ waiting, more }) => waiting.length + more.waiting)),
  };
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

export const LIFE_WORDS: Readonly<Record<InstanceLife, string>> = {
  answers: 'alive',
  silent: 'does not answer',
  gone: 'not connected: most likely dead',
  unheard: 'has not answered',
};

/** The group of a call and its place in the code. The group of everything else has no name. */
export function workOf({ group, callSite }: { readonly group: string; readonly callSite?: string }): string {
  return [group === OTHER_GROUP ? undefined : group, callSite].filter(Boolean).join(' ');
}
