import { Deferred } from '../core/util/deferred.js';
import {
  type AcquireReply,
  asStoreError,
  type LockStoreError,
  type LockOwner,
  type Queueing,
} from '../core/store/lock-store.js';
import { Broadcast } from './broadcast.js';
import type { QuorumDeps } from './deps.js';
import type { CandidateAtNode } from './candidate-at-node.js';
import { quorumError } from './majority.js';

type Granted = Extract<AcquireReply, { status: 'granted' }>;
/** What a node answers that does not grant. */
type Refusal = Exclude<AcquireReply, Granted>;

/** Who is told of the answers. The index is that of the node. */
export interface RoundListener {
  answered(round: Round, index: number, reply: AcquireReply): void;
  /** It will not answer, or has not in time. */
  failed(round: Round, index: number, error: LockStoreError): void;
  /** Called after each of `answered` and `failed`. */
  counted(): void;
  /** Called after each answer that came after it had counted as failed. */
  late(): void;
}

/** One attempt of a contender at all nodes, until its outcome is told. */
export class Round {
  readonly reply = new Deferred<AcquireReply>();
  /** What the contender was called at each node when it was sent. */
  readonly names: readonly LockOwner[];
  /** Where it stood before. */
  readonly wasTaken: readonly boolean[];
  /** By the time that the nodes know. */
  readonly sentAt: number;
  /** By the clock here. */
  readonly beganAt: number;
  readonly #broadcast: Broadcast<AcquireReply>;

  constructor(
    private readonly atNodes: readonly CandidateAtNode[],
    private readonly queueing: Queueing | undefined,
    private readonly deps: QuorumDeps,
    listener: RoundListener,
  ) {
    this.beganAt = deps.clock.now();
    this.sentAt = queueing?.sentAt ?? this.beganAt;
    this.#broadcast = new Broadcast<AcquireReply>(deps.nodes, deps, {
      answered: (index, reply) => listener.answered(this, index, reply),
      failed: (index, error) => listener.failed(this, index, error),
      late: (index, reply) => {
        listener.answered(this, index, reply);
        listener.late();
      },
      counted: () => listener.counted(),
    });
    this.names = atNodes.map(({ ownership }) => ownership);
    this.wasTaken = atNodes.map(({ isTaken }) => isTaken);
  }

  /** @param left told of each node whether what is handed back there was still held */
  send(leaseMs: number, left: ((wasHeld: boolean) => void) | undefined): void {
    this.#broadcast.send((_, index) => this.atNodes[index]!.ask(leaseMs, this.queueing, left));
  }

  /** How many have granted in answer to this attempt, and have not got their vote back since. */
  get granted(): number {
    return this.#votes.length;
  }

  /** How many (of those that are meant) may still answer in time. */
  countOpen(isMeant: (seat: CandidateAtNode) => boolean = () => true): number {
    const { answers, failures } = this.#broadcast;
    let count = 0;
    for (const [index, seat] of this.atNodes.entries()) {
      if (answers[index] === undefined && failures[index] === undefined && isMeant(seat)) count++;
    }
    return count;
  }

  /** Whether a majority answers with the lease that it had, or with an earlier one: then nobody else can have held the lock since. */
  isStillHeld(fencingToken: number): boolean {
    return this.#votes.filter((vote) => vote.fencingToken <= fencingToken).length >= this.deps.majority;
  }

  /** What it comes to where no majority has granted, as a reply or as an error; nothing while that may still be known. */
  refusal(): Refusal | Error | undefined {
    const { majority } = this.deps;
    const broadcast = this.#broadcast;
    const refusals = broadcast.answers.filter((answer): answer is Refusal => !!answer && answer.status !== 'granted');
    const { granted } = this;
    const answered = broadcast.answers.filter((answer) => answer !== undefined).length;
    if (answered >= majority) return this.#summary(refusals, majority - granted);
    if (answered + broadcast.pending >= majority) return undefined;
    return asStoreError(
      quorumError(broadcast, majority, granted, ({ status }) => (status === 'granted' ? undefined : status)),
    );
  }

  get #votes(): Granted[] {
    return this.#broadcast.answers.filter((answer, index): answer is Granted => {
      return answer?.status === 'granted' && this.atNodes[index]!.isCalled(this.names[index]!);
    });
  }

  /** @param missing how many more would have to grant it */
  #summary(refusals: readonly Refusal[], missing: number): Refusal {
    const { nodes, majority } = this.deps;
    // When so many leases have ended as it lacks votes.
    const ttls = refusals.map((refusal) => refusal.ttlMs).sort((a, b) => a - b);
    const ttlMs = ttls[Math.min(Math.max(missing, 1), ttls.length) - 1] ?? 0;
    for (const status of ['mismatch', 'full'] as const) {
      const such = refusals.filter((refusal) => refusal.status === status);
      if (such.length > nodes.length - majority) return { ...such[0]!, ttlMs };
    }
    if (this.queueing) return { status: 'queued', ttlMs };
    const isOpen = refusals.some((refusal) => refusal.status === 'busy' && refusal.isOpen);
    return isOpen ? { status: 'busy', ttlMs, isOpen } : { status: 'busy', ttlMs };
  }
}
