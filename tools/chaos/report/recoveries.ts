import { heartbeatMs } from '../checkers/bounds.js';
import type { Gap } from '../checkers/progress/gaps.js';

/** Limits the time between an event and the next grant of a resource. */
export interface Recovery {
  readonly what: string;
  readonly kinds: RegExp;
  readonly target: string;
  readonly boundMs: (leaseMs: number) => number;
}

/**
 * Two replies on a busy machine: each up to a quarter of a lease; slower ones are left out (see `Struck`). A grant
 * whose message got lost takes the reply to the release and the reply to the keep that finds it.
 */
const twoAnswersMs = (leaseMs: number): number => leaseMs / 2;

/**
 * A probe is sent after 1.75 s at the latest, and the next one 0.75 s after its reply. The pause before the reconnect
 * is up to 0.4 s, and a hanging connection is given up after 0.25 s.
 */
const HUNG_MS = 1_750 + 750 + 400 + 250;

/**
 * The lock or the place of a dead process ends no later than a lease after its death. A waiter asks when the lease that
 * it knows of should have ended (lookPause), or up to a twelfth of a lease later (heartbeatPause).
 */
const AFTER_A_DEAD_HOLDER: Recovery = {
  what: 'after a dead holder, or the last one that died or stood still and would have been next',
  kinds: /^died: /,
  target: '1.1 leases + 250 ms',
  boundMs: (leaseMs: number): number => 1.1 * leaseMs + 250,
};

/** The measure for each recovery, on keys such as `redis: Redis: LOADING`. */
export const FAULT_RECOVERIES: readonly Recovery[] = [
  AFTER_A_DEAD_HOLDER,
  {
    what: 'after a lost hand-over message',
    kinds: /^message: /,
    target: 'until places are kept (a third of a lease, and up to a quarter more) + half a lease',
    boundMs: (leaseMs: number): number => heartbeatMs(leaseMs) + twoAnswersMs(leaseMs),
  },
  {
    what: 'until a connection for messages that hangs is made anew, if a message had arrived on it',
    kinds: /^inbox: /,
    target: '3,150 ms + half a lease',
    boundMs: (leaseMs: number): number => HUNG_MS + twoAnswersMs(leaseMs),
  },
  {
    what: 'after Redis restarted, or the connections broke',
    kinds: /^redis: Redis: (kill|LOADING|CLIENT KILL)/,
    target: 'a third of a lease + 250 ms',
    boundMs: (leaseMs: number): number => leaseMs / 3 + 250,
  },
  {
    what: 'after Redis stood still, was busy or refused: what was sent before may be executed first',
    kinds: /^redis: Redis: (SIGSTOP|CLIENT PAUSE|BUSY|SCRIPT|out of memory)/,
    target: 'a lease + 250 ms',
    boundMs: (leaseMs: number): number => leaseMs + 250,
  },
];

/** Starts after the fault: when another node is the primary, or the nodes answer again. */
export const TOPOLOGY_RECOVERIES: readonly Recovery[] = [
  AFTER_A_DEAD_HOLDER,
  {
    what: 'after a fail-over, a slot that moved, or nodes that stood still',
    kinds: /^redis: /,
    target: 'a lease + 250 ms',
    boundMs: (leaseMs) => leaseMs + 250,
  },
];

/** The gaps by the key of their kind and fault. */
type Gaps = Readonly<Record<string, readonly Gap[]>>;

export function gapsOf({ kinds }: Recovery, gaps: Gaps): readonly Gap[] {
  return Object.entries(gaps).flatMap(([key, each]) => (kinds.test(key) ? each : []));
}

/** Leases are of several lengths. */
export function isLate({ boundMs }: Recovery, { ms, leaseMs }: Gap): boolean {
  return ms > boundMs(leaseMs);
}

/** Gaps over their bound, for the person who reads the history. */
export function lateGaps(all: readonly Recovery[], gaps: Gaps): string[] {
  return all.flatMap((recovery) =>
    gapsOf(recovery, gaps)
      .filter((gap) => isLate(recovery, gap))
      .map(({ resource, from, ms }) => {
        return `${recovery.what}: ${Math.round(ms)} ms, from ${Math.round(from)} ms on, ${JSON.stringify(resource)}`;
      }),
  );
}
