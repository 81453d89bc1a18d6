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
