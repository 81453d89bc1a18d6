/** The kind of store that a lock service uses. */
export type LockTopology = 'standalone' | 'sentinel' | 'cluster' | 'quorum' | 'memory';

/** One problem of a store. Safe to show to anyone: it contains no addresses, no names and no credentials. */
export interface HealthProblem {
  /** The problem as a code for programs: from Redis or Node, such as `READONLY`, or one of this package. */
  readonly code: string;
  /** The problem as a sentence for people. */
  readonly message: string;
  /**
   * The number of the server that has the problem, counted from 1. On a quorum, servers are counted in the order of the
   * option `quorum`.
   */
  readonly server?: number;
}

/** A problem, as a store reports it. */
export interface StoreProblem extends HealthProblem {
  /** `true` if no lock can be taken until it is solved. */
  readonly isFatal: boolean;
}

/** The answer of one server to a probe. */
export interface ServerHealth {
  /** The round trip of the script that writes, in milliseconds. Not set if it was not executed. */
  readonly roundTripMs?: number;
  readonly problems: readonly StoreProblem[];
}

/** A probe under way: what a store knows at once, and one answer to come for each server. */
export interface StoreProbe {
  readonly topology: LockTopology;
  /** The number of servers that are needed to take a lock. */
  readonly needed: number;
  /** Never rejects. May stay pending for as long as its server hangs: the caller has its own time limit. */
  readonly servers: readonly Promise<ServerHealth>[];
  /** Problems that do not depend on the servers' answers. */
  readonly problems: readonly StoreProblem[];
}

/** The same answer, with a problem if it came after the time in which the answer to a command of a lock must come. */
export function orTooSlow(answer: ServerHealth, limitMs: number, option: string): ServerHealth {
  const { roundTripMs = 0, problems } = answer;
  if (roundTripMs <= limitMs || problems.some(({ code }) => code === 'SLOW')) return answer;
  const message = `Redis answered, but later than the ${limitMs} ms that a lock waits (${option}).`;
  return { ...answer, problems: [...problems, { code: 'SLOW', message, isFatal: true }] };
}

const CLOSED: StoreProblem = {
  code: 'CLOSED',
  message: 'This lock service is closed, because its application has shut down.',
  isFatal: true,
};

export function closedProbe(topology: LockTopology): StoreProbe {
  return { topology, needed: 0, servers: [], problems: [CLOSED] };
}
