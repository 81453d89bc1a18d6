import { Deferred } from './deferred.js';
import { type AcquireReply, asStoreError, type Ownership, type Queueing } from './lock-store.js';
import type { Ballot } from './quorum-ballot.js';
import type { QuorumSeat } from './quorum-seat.js';
import { quorumError } from './quorum-verdict.js';

type Granted = Extract<AcquireReply, { status: 'granted' }>;
/** What a node answers that does not grant. */
type Refusal = Exclude<AcquireReply, Granted>;

/** One attempt of a contender at all nodes, until its outcome is told. */
export class QuorumRound {
  readonly reply = new Deferred<AcquireReply>();
  /** What the contender was called at each node when it was sent. */
  readonly names: readonly Ownership[];
  /** Where it stood before. */
  readonly wasTaken: readonly boolean[];

  constructor(
    private readonly seats: readonly QuorumSeat[],
    readonly sentAt: number,
    /** When it was sent by the clock here. */
    readonly beganAt: number,
    readonly queueing: Queueing | undefined,
  ) {
    this.names = seats.map(({ ownership }) => ownership);
    this.wasTaken = seats.map(({ isTaken }) => isTaken);
  }

  /** How many have granted in answer to this attempt, and have not got their vote back since. */
  granted(ballot: Ballot<AcquireReply>): number {
    return this.#votes(ballot).length;
  }

  /** Whether a majority answers with the lease that it had, or with an earlier one: then nobody else can have held the lock since. */
  isStillHeld(ballot: Ballot<AcquireReply>, fencingToken: number, majority: number): boolean {
    return this.#votes(ballot).filter((vote) => vote.fencingToken <= fencingToken).length >= majority;
  }

  /** What it comes to where no majority has granted, as a reply or as an error; nothing while that may still be known. */
  refusal(ballot: Ballot<AcquireReply>, majority: number): Refusal | Error | undefined {
    const refusals = ballot.answers.filter((answer): answer is Refusal => !!answer && answer.status !== 'granted');
    const granted = this.granted(ballot);
    const answered = ballot.answers.filter((answer) => answer !== undefined).length;
    if (answered >= majority) return this.#summary(refusals, majority - granted, majority, ballot);
    if (answered + ballot.pending >= majority) return undefined;
    return asStoreError(
      quorumError(ballot, majority, granted, ({ status }) => (status === 'granted' ? undefined : status)),
    );
  }

  #votes({ answers }: Ballot<AcquireReply>): Granted[] {
    return answers.filter((answer, index): answer is Granted => {
      return answer?.status === 'granted' && this.seats[index]!.isCalled(this.names[index]!);
    });
  }

  /** @param missing how many more would have to grant it */
  #summary(refusals: readonly Refusal[], missing: number, majority: number, { nodes }: Ballot<AcquireReply>): Refusal {
    // When so many leases have ended as it lacks votes.
    const ttls = refusals.map((refusal) => refusal.ttlMs).sort((a, b) => a - b);
    const ttlMs = ttls[Math.min(Math.max(missing, 1), ttls.length) - 1] ?? 0;
    for (const status of ['mismatch', 'full'] as const) {
      const such = refusals.filter((refusal) => refusal.status === status);
      if (such.length > nodes.length - majority) return { ...such[0]!, ttlMs };
    }
    return { status: this.queueing ? 'queued' : 'busy', ttlMs };
  }
}
