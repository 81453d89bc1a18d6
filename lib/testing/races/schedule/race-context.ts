import { AsyncLocalStorage } from 'node:async_hooks';
import type { Access } from './access.js';

/** One actor of one schedule. */
export interface Actor {
  readonly name: string;
  /** How many points it has come to. */
  points: number;
  state: 'running' | 'returned' | 'threw' | 'killed';
  /** What it has returned or thrown. */
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
export interface RaceContext {
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
