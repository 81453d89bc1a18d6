import { AsyncLocalStorage } from 'node:async_hooks';

/** The shared state that the code of one step may touch. */
export interface Access {
  /**
   * The name of the object. If `undefined`, the step may touch anything except the store of the locks, which only
   * commands reach.
   */
  readonly object?: string | undefined;
  /** `true` if the step may change the object. */
  readonly writes: boolean;
  /** Set if the step touches nothing that another actor sees. */
  readonly isPrivate?: true;
  /** Set for a command to the store of the locks, in which no code of an actor runs. */
  readonly isCommand?: true;
  /** Set if the step may touch anything, even the store. */
  readonly isGlobal?: true;
}

/** Unnamed code of an actor. */
export const ANYTHING: Access = { writes: true };
/** For time that passes, and a lock that is lost. */
export const EVERYTHING: Access = { writes: true, isGlobal: true };
/** Touches nothing that another actor sees. */
export const NOTHING: Access = { writes: false, isPrivate: true };

/** The part of a step that decides whether its order matters. */
export interface Ordered {
  /** The same in every schedule that led to the same steps of its actor. */
  readonly id: string;
  readonly actor: string;
  readonly access: Access;
  /** `true` for a fault. A schedule has a limited number of faults, so one fault excludes another. */
  readonly isFault?: boolean;
}

/**
 * Returns true if the order of two steps can matter. Steps of one actor always depend on each other, because only the
 * actor's own code knows how they belong together.
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
  /** The points that it has reached. */
  points: number;
  state: 'running' | 'returned' | 'threw' | 'killed';
  value?: unknown;
  /** The number of steps that were done when it ended. */
  endedAfter?: number;
}

/** Adds the result of a step to its line in the story. */
export interface StepNote {
  add(text: string): void;
}

export interface ActorTurns {
  /** `true` if unnamed code touches nothing that another actor sees. */
  readonly onlyNamed: boolean;
  readonly actors: readonly Actor[];
  /** Waits for anything but points, for the message of a run that is stuck. */
  readonly waits: Map<Actor, string>;
  /** `true` if the actors are stopped for good: their later calls have no effect. */
  readonly hasEnded: boolean;
  /** Waits here until it is the actor's turn. Never resolves if the actor was killed, or if the run has ended. */
  point(actor: Actor, text: string, access: Access): Promise<StepNote>;
  /** The same, but the story omits it, and it may touch anything that unnamed code may. */
  unnamedPoint(actor: Actor, text: string): Promise<StepNote>;
  /** Adds a line to the story, behind the last step, for something that was no choice. */
  addLine(actor: Actor, text: string): void;
  granted(actor: Actor, fencingToken: number): void;
  /** Stops the actor for good: nothing that it waits for resolves any more. */
  kill(actor: string): void;
}

/** The actor whose code runs, and its run. */
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
