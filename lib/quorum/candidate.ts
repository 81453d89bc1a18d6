import type { AcquireReply, LockOwner, Queueing } from '../kernel/store/lock-store.js';
import { asStoreError, LockStoreError } from '../kernel/store/store-error.js';
import type { PushedGrant, PushedNotice } from '../kernel/store/message-health.js';
import { LOCK_DEFAULTS } from '../kernel/api/lock-options.js';
import { CandidateAtNode, idOfAttempt, type OnReleased, stampOf, tokenOf, type Vote } from './candidate-at-node.js';
import { askMajority, enoughToDeny } from './majority.js';
import { NotSentError, type QuorumDeps } from './node.js';
import { VoteBackoff } from './vote-backoff.js';
import { Round } from './round.js';

/**
 * One owner that asks all nodes for votes (Raft's candidate). It holds the lock with the votes of a majority (Redlock).
 * When votes are split, a candidate with too few passes each on to the next in that node's queue, and joins the end.
 * It first waits for a random time that grows with its votes: so votes gather where most of them are.
 *
 * @see https://raft.github.io/raft.pdf (section 5.2: candidates, split votes)
 */
export class Candidate {
  readonly atNodes: readonly CandidateAtNode[];
  touchedAt = 0;
  leaseMs = 0;
  /** The number of votes it had when it last gave all of them up. */
  lostVotes = 0;
  /** The token of the lease that it holds, or held last. */
  fencingToken = 0;
  roundMs = 1;
  #state: 'collecting' | 'raising' | 'held' | 'over' = 'collecting';
  #heldSince = -Infinity;
  #queueing: Queueing | undefined;
  /** The rounds without an outcome. */
  readonly #rounds = new Set<Round>();
  readonly #backoff: VoteBackoff;

  /** @param isBack whether the owner was forgotten: late releases of its earlier locks must not free its new one */
  constructor(
    public owner: LockOwner,
    private readonly deps: QuorumDeps,
    isBack = false,
  ) {
    const newOwner = () => ({ ...this.owner, id: idOfAttempt(owner.id, deps.newAttempt()) });
    const first = isBack ? newOwner() : owner;
    this.atNodes = deps.nodes.map((node) => new CandidateAtNode(node, first, newOwner));
    this.touchedAt = deps.clock.now();
    this.#backoff = new VoteBackoff(deps.alarms, deps.random, () => this.#passVotesOn());
  }

  get hasWon(): boolean {
    return this.#heldSince > -Infinity;
  }

  get votes(): number {
    return this.#validVotes.length;
  }

  /** The votes whose leases cannot have ended. */
  get #validVotes(): Vote[] {
    const endedBefore = this.deps.clock.now() - this.leaseMs;
    const valid: Vote[] = [];
    for (const { vote } of this.atNodes) if (vote && vote.stamp > endedBefore) valid.push(vote);
    return valid;
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  acquire(leaseMs: number, queueing: Queueing | undefined, released?: OnReleased): Promise<AcquireReply> {
    this.touch(leaseMs);
    this.#queueing = queueing;
    const answered = (index: number, reply: AcquireReply): void =>
      this.#onReply(index, round.owners[index]!, round.sentAt, reply);
    const round: Round = new Round(this.atNodes, queueing, this.deps, {
      answered,
      failed: (index, error) => this.#onNoReply(index, round, error),
      counted: () => this.#evaluate(),
      late: (index, reply) => {
        answered(index, reply);
        this.#evaluateAndWait();
      },
    });
    this.#rounds.add(round);
    round.send(leaseMs, released);
    return round.reply.promise;
  }

  /** A node announces a grant. Returns whether it is for the present owner of this candidate there. */
  onGrantMessage(index: number, grant: PushedGrant): boolean {
    const atNode = this.atNodes[index]!;
    // Once it has ended, a release is under way.
    if (this.isOver || !grant.isFor(atNode.owner.id)) return false;
    const vote = { fencingToken: grant.fencingToken, stamp: grant.sentAt };
    // Otherwise the node has to be asked, as it is every second.
    if (vote.stamp > -Infinity && atNode.onGrantMessage(vote)) this.#evaluateAndWait();
    return true;
  }

  /**
   * A node announces when it becomes free. The lock may be free when a majority is. If the node was asked again since,
   * its answer is newer, and the message may be a copy of an old one.
   */
  onRetained(index: number, { leftMs, sentAt: askedAt, isFor }: PushedNotice): void {
    const { clock, majority, retained } = this.deps;
    const atNode = this.atNodes[index]!;
    if (this.#state !== 'collecting' || !this.#queueing || askedAt < Math.floor(this.#queueing.sentAt)) return;
    if (!isFor(atNode.owner.id)) return;
    const now = clock.now();
    atNode.freeAt = now + leftMs;
    const ends = this.atNodes.map(({ vote, freeAt }) => (vote ? now : freeAt)).filter((end) => end !== undefined);
    if (ends.length < majority) return;
    const freeAt = ends.sort((a, b) => a - b)[majority - 1]!;
    const { resource, id } = this.owner;
    const sentAt = Math.floor(this.#queueing.sentAt);
    retained({ resource, leftMs: Math.max(0, freeAt - now), sentAt, isFor: (other) => other === id });
  }

  /** The owner asks for another call now: later grants have this label. */
  label(label: string | undefined): void {
    this.owner = { ...this.owner, label };
    for (const atNode of this.atNodes) atNode.label = label;
  }

  touch(leaseMs: number): void {
    this.leaseMs = leaseMs;
    this.touchedAt = this.deps.clock.now();
  }

  /** A node has lost the lock that a majority still has: asks for its vote, and waits for it in the queue there. */
  reclaimVote(index: number): void {
    if (this.#state !== 'held') return;
    this.atNodes[index]!.vote = undefined;
    this.#ask(index, LOCK_DEFAULTS.maxWaiters);
  }

  /** Releases all it may have. The owner may ask again. */
  abandon(): void {
    if (this.isOver) return;
    this.#state = 'collecting';
    this.#backoff.end();
    this.#withdraw();
  }

  /**
   * Ends the candidate. A grant that comes later is released.
   *
   * @param isForgotten whether nothing is released
   */
  end(isForgotten = false): void {
    this.#state = 'over';
    this.#backoff.end();
    for (const atNode of this.atNodes) atNode.end(this.leaseMs, isForgotten);
    if (this.#rounds.size === 0) return;
    this.#reject(new LockStoreError('unknown', 'the lock was released before the nodes had answered'));
  }

  #passVotesOn(): void {
    if (this.#state !== 'collecting' || !this.#queueing) return;
    this.atNodes.forEach((atNode, index) => {
      if (!atNode.vote) return;
      atNode.passVoteOn(this.leaseMs);
      this.#ask(index, this.#queueing!.maxWaiters);
    });
  }

  /** Asks one node, outside of a round. If that fails, the next round asks this node as well. */
  #ask(index: number, maxWaiters: number): void {
    const atNode = this.atNodes[index]!;
    const { owner } = atNode;
    const sentAt = this.deps.clock.now();
    atNode.node.ask(
      () => atNode.ask(this.leaseMs, { sentAt, maxWaiters }),
      (reply) => {
        this.#onReply(index, owner, sentAt, reply);
        this.#evaluateAndWait();
      },
      (error) => this.#onError(atNode, owner, error),
    );
  }

  #onReply(index: number, owner: LockOwner, stamp: number, reply: AcquireReply): void {
    const atNode = this.atNodes[index]!;
    atNode.onAnswered(owner);
    if (!this.isOver && atNode.isPresent(owner)) atNode.onReply(reply, stamp);
    else if (reply.status === 'granted' || reply.status === 'queued') atNode.refuse(owner, this.leaseMs);
  }

  #onNoReply(index: number, { wasThere, sentAt, owners }: Round, error: LockStoreError): void {
    const atNode = this.atNodes[index]!;
    this.#onError(atNode, owners[index]!, error);
    if (atNode.isPresent(owners[index]!)) atNode.onNoReply(sentAt, wasThere[index]! || error.failure === 'unknown');
  }

  /** Unless the failure is 'unknown', the command is never executed. A command that was not sent was not counted. */
  #onError(atNode: CandidateAtNode, owner: LockOwner, error: LockStoreError): void {
    if (error.failure !== 'unknown' && !(error instanceof NotSentError)) atNode.onAnswered(owner);
  }

  /** After an answer or a message that no round waits for. */
  #evaluateAndWait(): void {
    this.#evaluate();
    this.#waitForVotes();
  }

  /** Ends each round whose outcome is known now. */
  #evaluate(): void {
    if (this.#state === 'collecting') this.#tryToWin();
    if (this.#rounds.size === 0) return;
    for (const round of this.#rounds) {
      if (this.#state === 'raising') return;
      if (this.#state === 'held' && round.granted >= this.deps.majority) {
        if (round.isStillHeld(this.fencingToken)) {
          this.#answer(round, { status: 'granted', fencingToken: this.fencingToken });
          continue;
        }
        // Its lease ended before this grant. Other processes may have held the lock since: it needs a new token.
        this.#state = 'collecting';
        return this.#evaluate();
      }
      if (this.#mayWin(round)) continue;
      const refusal = round.refusal();
      if (refusal !== undefined) this.#lose(round, refusal);
    }
  }

  #mayWin(round: Round): boolean {
    const votes =
      this.#state === 'held' ? round.granted + round.countOpen() : this.votes + round.countOpen(({ vote }) => !vote);
    return votes >= this.deps.majority;
  }

  #tryToWin(): void {
    const { majority, nodes, fencing } = this.deps;
    const votes = this.#validVotes;
    if (votes.length < majority) return;
    const stamp = stampOf(votes, majority);
    const fencingToken = tokenOf(votes, majority, this.fencingToken);
    if (!fencing) return this.#hold(stamp, fencingToken);
    this.#state = 'raising';
    const written = askMajority(this.deps, {
      send: ({ store }, index) => store.raiseToken(this.atNodes[index]!.owner, fencingToken),
      enoughNos: enoughToDeny(nodes.length),
    });
    written.then(
      (isWritten) => {
        if (isWritten) this.#hold(stamp, fencingToken);
        else this.#onNotWritten(new LockStoreError('unknown', 'votes were lost while the fencing token was written'));
      },
      (error: unknown) => this.#onNotWritten(asStoreError(error)),
    );
  }

  #hold(stamp: number, fencingToken: number): void {
    if (this.isOver) return;
    this.#state = 'held';
    this.#heldSince = this.deps.clock.now();
    this.fencingToken = fencingToken;
    this.#backoff.end();
    const answered = [...this.#rounds].filter(({ sentAt }) => sentAt <= stamp);
    for (const round of answered) this.#answer(round, { status: 'granted', fencingToken });
    if (answered.length === 0) {
      const { resource, id } = this.owner;
      this.deps.granted({ resource, fencingToken, sentAt: stamp, isFor: (other) => other === id });
    }
    this.#evaluate();
  }

  /** The next request tries again. */
  #onNotWritten(error: LockStoreError): void {
    if (this.isOver) return;
    this.#state = 'collecting';
    this.#reject(error);
  }

  #reject(error: LockStoreError): void {
    for (const round of this.#rounds) round.reply.reject(error);
    this.#rounds.clear();
  }

  #answer(round: Round, reply: AcquireReply): void {
    this.#rounds.delete(round);
    this.roundMs = Math.max(1, this.deps.clock.now() - round.beganAt);
    round.reply.resolve(reply);
  }

  #lose(round: Round, refusal: AcquireReply | Error): void {
    const isHeld = this.#state === 'held';
    if (refusal instanceof Error) {
      this.#rounds.delete(round);
      if (!isHeld) this.#withdraw();
      round.reply.reject(refusal);
      return;
    }
    // The round began before the lock was won. Messages may overtake replies.
    if (isHeld && round.beganAt <= this.#heldSince) return this.#answer(round, refusal);
    if (isHeld) this.#state = 'collecting';
    if (refusal.status !== 'queued') this.#withdraw();
    this.#answer(round, refusal);
    this.#waitForVotes();
  }

  #withdraw(): void {
    this.lostVotes = this.votes;
    for (const atNode of this.atNodes) atNode.withdraw(this.leaseMs);
  }

  #waitForVotes(): void {
    const { votes } = this;
    if (this.#state !== 'collecting' || !this.#queueing || votes === 0) this.#backoff.end();
    else this.#backoff.wait(this.roundMs, votes);
  }
}
