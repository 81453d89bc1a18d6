import { AsyncLocalStorage } from 'node:async_hooks';

/** What the code of one step may touch that other actors see. */
export interface Access {
  /** What it touches. Not set: it may touch anything but the store of the locks, which only commands reach. */
  readonly object?: string | undefined;
  /** Whether it may change it. */
  readonly writes: boolean;
  /** It touches nothing that another actor sees. */
  readonly isPrivate?: true;
  /** It is a command to the store of the locks: no code of an actor runs in it. */
  readonly isCommand?: true;
  /** It may touch anything, and the store too. */
  readonly isGlobal?: true;
}

/** Code of an actor of which nothing is known. */
export const ANYTHING: Access = { writes: true };
/** Time passes, or a lock is lost. */
export const EVERYTHING: Access = { writes: true, isGlobal: true };
/** It touches nothing that another actor sees. */
export const NOTHING: Access = { writes: false, isPrivate: true };

/** A step as far as it matters which step comes first. */
export interface Ordered {
  /** The same in every schedule that led to the same steps of its actor. */
  readonly id: string;
  readonly actor: string;
  readonly access: Access;
  /** Whether it is a fault. Only so many faults happen in one schedule, so one fault excludes another. */
  readonly isFault?: boolean;
}

/**
 * Whether it can matter which of two steps comes first. Steps of one actor always depend on each other, because only
 * the actor's own code knows how they belong together.
 */
export function areDependent(one: Ordered, other: Ordered): boolean {
  if (one.actor === other.actor || (one.isFault && other.isFault)) return true;
  const { access: first } = one;
  const { access: second } = other;
  if (first.isPrivate || second.isPrivate) return false;
  if (first.isGlobal || second.isGlobal) return true;
  if (first.isCommand !== second.isCommand) return false;
  if (first.object === undefined || second.object === undefined) return true;
  return first.object === second.object && (first.writes || second.writes);
}

/** One actor of one schedule. */
export interface Actor {
  readonly name: string;
  /** How many points it has come to. */
  points: number;
  state: 'running' | 'returned' | 'threw' | 'killed';
  value?: unknown;
  /** How many steps had been done when it ended. */
  endedAfter?: number;
}

/** Adds to the story of a step what came of it. */
export interface StepNote {
  add(text: string): void;
}

/** The run that an actor belongs to. */
export interface ActorTurns {
  /** Whether code that names nothing touches nothing that another actor sees. */
  readonly onlyNamed: boolean;
  readonly actors: readonly Actor[];
  /** What actors wait for, other than points: for the message of a run that is stuck. */
  readonly waits: Map<Actor, string>;
  /** Whether its actors are stopped for good: what they still try has no effect. */
  readonly isOver: boolean;
  /** The actor waits here until it is its turn. It never goes on if it was killed, or if the run is over. */
  point(actor: Actor, text: string, access: Access): Promise<StepNote>;
  /** The same, but the story leaves it out, and it may touch what code touches that names nothing. */
  unnamedPoint(actor: Actor, text: string): Promise<StepNote>;
  /** The actor did something that was no choice: a line of the story behind the last step. */
  tell(actor: Actor, text: string): void;
  /** An actor was granted a lock with this fencing token. */
  granted(actor: Actor, fencingToken: number): void;
  /** It does nothing more. What it waits for never comes. */
  kill(actor: string): void;
}

/** The actor whose code runs, and the run it belongs to. */
interface RaceContext {
  readonly schedule: ActorTurns;
  readonly actor: Actor;
}

const storage = new AsyncLocalStorage<RaceContext | undefined>();

/** The actor whose code runs now. `undefined` outside of {@link exploreRaces}. */
export function currentActor(): RaceContext | undefined {
  return storage.getStore();
}

export function runAsActor<T>(context: RaceContext, work: () => T): T {
  return storage.run(context, work);
}
