import { Deferred } from '../kernel/util/promises.js';
import type { AcquireReply, LockOwner, Queueing } from '../kernel/store/lock-store.js';
import { asStoreError } from '../kernel/store/store-error.js';
import { Broadcast, type BroadcastListener, quorumError } from './majority.js';
import type { CandidateAtNode, OnReleased } from './candidate-at-node.js';
import type { QuorumDeps } from './node.js';
import { mergeSeen } from './holders.js';

type Granted = Extract<AcquireReply, { status: 'granted' }>;
type RefusedReply = Exclude<AcquireReply, Granted>;

/** One request of a candidate to all nodes, until its outcome is known. */
export class Round {
  readonly reply = new Deferred<AcquireReply>();
  /** The owner at each node when the request was sent. */
  readonly owners: readonly LockOwner[];
  readonly wasThere: readonly boolean[];
  /** The send time of the request, as the nodes get it. */
  readonly sentAt: number;
  /** When the request was sent, by the clock of this store. */
  readonly beganAt: number;
  readonly #broadcast: Broadcast<AcquireReply>;

  constructor(
    private readonly atNodes: readonly CandidateAtNode[],
    private readonly queueing: Queueing | undefined,
    private readonly deps: QuorumDeps,
    listener: BroadcastListener<AcquireReply>,
  ) {
    this.beganAt = deps.clock.now();
    this.sentAt = queueing?.sentAt ?? this.beganAt;
    this.#broadcast = new Broadcast<AcquireReply>(deps, listener);
    this.owners = atNodes.map(({ owner }) => owner);
    this.wasThere = atNodes.map(({ mayBeThere }) => mayBeThere);
  }

  send(leaseMs: number, released: OnReleased | undefined): void {
    this.#broadcast.send((_, index) => this.atNodes[index]!.ask(leaseMs, this.queueing, released));
  }

  /** The number of votes in answer to this request that were not passed on since. */
  get granted(): number {
    return this.#votes.length;
  }

  /** The number of nodes accepted by the filter that may still answer in time. */
  countOpen(isMeant: (atNode: CandidateAtNode) => boolean = () => true): number {
    const { answers, failures } = this.#broadcast;
    let count = 0;
    for (const [index, atNode] of this.atNodes.entries()) {
      if (answers[index] === undefined && failures[index] === undefined && isMeant(atNode)) count++;
    }
    return count;
  }

  /**
   * Returns true if a majority answers with the candidate's lease, or with an earlier one: then no other process can
   * have held the lock since.
   */
  isStillHeld(fencingToken: number): boolean {
    return this.#votes.filter((vote) => vote.fencingToken <= fencingToken).length >= this.deps.majority;
  }

  /**
   * The outcome without a majority of votes: a reply or an error; `undefined` while answers are missing that decide
   * which.
   */
  refusal(): RefusedReply | Error | undefined {
    const { nodes, majority } = this.deps;
    const broadcast = this.#broadcast;
    const refusals = broadcast.answers.filter(
      (answer): answer is RefusedReply => !!answer && answer.status !== 'granted',
    );
    const { granted } = this;
    const answered = broadcast.answers.filter((answer) => answer !== undefined).length;
    if (answered >= majority) return this.#summary(refusals, majority - granted, nodes.length - answered);
    if (answered + broadcast.pending >= majority) return undefined;
    return asStoreError(quorumError(broadcast, granted, ({ status }) => (status === 'granted' ? undefined : status)));
  }

  get #votes(): Granted[] {
    return this.#broadcast.answers.filter((answer, index): answer is Granted => {
      return answer?.status === 'granted' && this.atNodes[index]!.isPresent(this.owners[index]!);
    });
  }

  /**
   * @param missing how many more votes would make a majority
   * @param silent how many nodes have not answered
   */
  #summary(refusals: readonly RefusedReply[], missing: number, silent: number): RefusedReply {
    const { nodes, majority } = this.deps;
    // The lock may be free when as many leases have ended as votes are missing.
    const ttls = refusals.map((refusal) => refusal.ttlMs).sort((a, b) => a - b);
    const ttlMs = ttls[Math.min(Math.max(missing, 1), ttls.length) - 1] ?? 0;
    const such = (status: RefusedReply['status']) => refusals.filter((refusal) => refusal.status === status);
    const isEnough = ({ length }: readonly RefusedReply[]) => length > nodes.length - majority;
    const mismatches = such('mismatch');
    if (isEnough(mismatches)) return { ...mismatches[0]!, ttlMs };
    const views = refusals.map((refusal) => (refusal.status === 'mismatch' ? undefined : refusal.seen));
    const seen = mergeSeen(views, silent, majority);
    const known = seen ? { ttlMs, seen } : { ttlMs };
    if (isEnough(such('full'))) return { status: 'full', ...known };
    if (this.queueing) {
      // At so many nodes, its place is no worse.
      const places = refusals.flatMap((refusal) => (refusal.status === 'queued' ? (refusal.place ?? []) : []));
      const place = places.sort((a, b) => a - b)[majority - 1];
      return place === undefined ? { status: 'queued', ...known } : { status: 'queued', ...known, place };
    }
    const inconclusive = refusals.some((refusal) => refusal.status === 'busy' && refusal.inconclusive);
    return inconclusive ? { status: 'busy', ...known, inconclusive } : { status: 'busy', ...known };
  }
}
