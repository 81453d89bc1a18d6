import {
  type AcquireReply,
  asStoreError,
  LockStoreError,
  type LockOwner,
  type PushedGrant,
  type Queueing,
} from '../core/store/lock-store.js';
import { LOCK_DEFAULTS } from '../core/api/lock-options.js';
import { NotAskedError } from './node.js';
import { Patience } from './patience.js';
import { Round, type RoundListener } from './round.js';
import { nameOf, CandidateAtNode } from './candidate-at-node.js';
import { askMajority, enoughToDeny } from './majority.js';
import { type Vote, stampOf, tokenOf } from './vote.js';
import type { QuorumDeps } from './deps.js';

/**
 * One id id at all nodes: it contends for their votes, and holds the lock while a majority of them is its own. Where the
 * votes are split, whoever has too few hands them on, node by node, to those who are next there, after a pause that is
 * random, and longer the more votes it has: votes gather where most of them are. It keeps its place in all other queues.
 */
export class Candidate {
  readonly atNodes: readonly CandidateAtNode[];
  /** When it was last heard of. */
  touchedAt = 0;
  leaseMs = 0;
  /** How many votes the last attempt had that was given up. */
  lostVotes = 0;
  /** The token of what it holds, or held last. */
  fencingToken = 0;
  #state: 'contending' | 'raising' | 'held' | 'over' = 'contending';
  /** When it was seen to have a majority, by the clock here. */
  #heldSince = -Infinity;
  #queueing: Queueing | undefined;
  /** Those whose outcome is not told yet. */
  readonly #rounds = new Set<Round>();
  readonly #listener: RoundListener;
  readonly #patience: Patience;
  /** How long the nodes took to answer. */
  #roundMs = 1;

  constructor(
    readonly ownership: LockOwner,
    private readonly deps: QuorumDeps,
    /** Whether it was forgotten: releases of what it had may still be on their way, which must not free what it gets now. */
    isBack = false,
  ) {
    const newName = () => ({ ...ownership, id: nameOf(ownership.id, deps.newAttempt()) });
    const name = isBack ? newName() : ownership;
    this.atNodes = deps.nodes.map((node) => new CandidateAtNode(node, name, newName));
    this.touchedAt = deps.clock.now();
    this.#listener = {
      answered: ({ names, sentAt }, index, reply) => this.#onReply(index, names[index]!, sentAt, reply),
      failed: (round, index, error) => this.#onNoReply(index, round, error),
      counted: () => this.#look(),
      late: () => this.#heard(),
    };
    this.#patience = new Patience(deps.alarms, deps.random, () => this.#passVotesOn());
  }

  get votes(): number {
    return this.#standing.length;
  }

  /** Those that cannot have ended since they were given. */
  get #standing(): Vote[] {
    const endedBefore = this.deps.clock.now() - this.leaseMs;
    const standing: Vote[] = [];
    for (const { vote } of this.atNodes) if (vote && vote.stamp > endedBefore) standing.push(vote);
    return standing;
  }

  /** How long the last attempt took. */
  get roundMs(): number {
    return this.#roundMs;
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** @param left told of each node whether what is handed back there was still held */
  acquire(leaseMs: number, queueing: Queueing | undefined, left?: (wasHeld: boolean) => void): Promise<AcquireReply> {
    this.touch(leaseMs);
    this.#queueing = queueing;
    const round = new Round(this.atNodes, queueing, this.deps, this.#listener);
    this.#rounds.add(round);
    round.send(leaseMs, left);
    return round.reply.promise;
  }

  /** A node says that it has granted. Whether to this one, by the name it has there now. */
  onGrantMessage(index: number, grant: PushedGrant): boolean {
    const seat = this.atNodes[index]!;
    // A release under that name is under way.
    if (this.isOver || !seat.isMeant(grant)) return false;
    if (seat.onGrantMessage({ fencingToken: grant.fencingToken, stamp: grant.sentAt })) this.#heard();
    return true;
  }

  /** It holds what it was given elsewhere. */
  static adopt(ownership: LockOwner, leaseMs: number, deps: QuorumDeps): Candidate {
    const adopted = new Candidate(ownership, deps);
    adopted.#state = 'held';
    adopted.touch(leaseMs);
    for (const seat of adopted.atNodes) seat.isTaken = true;
    return adopted;
  }

  touch(leaseMs: number): void {
    this.leaseMs = leaseMs;
    this.touchedAt = this.deps.clock.now();
  }

  /** A node does not have it any more while a majority has: it asks for the vote, and waits for it there. */
  reclaimVote(index: number): void {
    if (this.#state !== 'held') return;
    this.atNodes[index]!.vote = undefined;
    this.#ask(index, LOCK_DEFAULTS.maxWaiters);
  }

  /** It gives up what it has, or may have, and may contend anew. */
  abandon(): void {
    if (this.isOver) return;
    this.#state = 'contending';
    this.#patience.end();
    this.#withdraw();
  }

  /**
   * It contends no more, and holds nothing. What is still granted to it is given back.
   *
   * @param isForgotten whether nothing is released
   */
  end(isForgotten = false): void {
    this.#state = 'over';
    this.#patience.end();
    for (const seat of this.atNodes) seat.end(this.leaseMs, isForgotten);
    if (this.#rounds.size > 0)
      this.#reject(new LockStoreError('unknown', 'it was released before the nodes had answered'));
  }

  /** It has waited long enough for more votes. */
  #passVotesOn(): void {
    if (this.#state !== 'contending' || !this.#queueing) return;
    this.atNodes.forEach((seat, index) => {
      if (!seat.vote) return;
      seat.passVoteOn(this.leaseMs);
      this.#ask(index, this.#queueing!.maxWaiters);
    });
  }

  #ask(index: number, maxWaiters: number): void {
    const seat = this.atNodes[index]!;
    const name = seat.ownership;
    const sentAt = this.deps.clock.now();
    seat.node.ask(
      () => seat.ask(this.leaseMs, { sentAt, maxWaiters }),
      (reply) => {
        this.#onReply(index, name, sentAt, reply);
        this.#heard();
      },
      (error) => this.#settle(seat, name, error), // whoever asks next asks for this as well
    );
  }

  #onReply(index: number, name: LockOwner, stamp: number, reply: AcquireReply): void {
    const seat = this.atNodes[index]!;
    seat.answered(name);
    if (!this.isOver && seat.isCalled(name)) seat.onReply(reply, stamp);
    else if (reply.status === 'granted' || reply.status === 'queued') seat.refuse(name, this.leaseMs);
  }

  #onNoReply(index: number, { wasTaken, sentAt, names }: Round, error: LockStoreError): void {
    const seat = this.atNodes[index]!;
    this.#settle(seat, names[index]!, error);
    if (seat.isCalled(names[index]!)) seat.onNoReply(sentAt, wasTaken[index]! || error.failure === 'unknown');
  }

  /** What has failed like this will not be executed, unless that is not known. What was not sent was not counted. */
  #settle(seat: CandidateAtNode, name: LockOwner, error: LockStoreError): void {
    if (error.failure !== 'unknown' && !(error instanceof NotAskedError)) seat.answered(name);
  }

  /** Something that no round waits for. */
  #heard(): void {
    this.#look();
    this.#considerPassingVotesOn();
  }

  /** Whether anything is decided now. */
  #look(): void {
    const { majority } = this.deps;
    if (this.#state === 'contending') this.#win();
    if (this.#rounds.size === 0) return;
    for (const round of this.#rounds) {
      if (this.#state === 'raising') return;
      if (this.#state === 'held' && round.granted >= majority) {
        if (!round.isStillHeld(this.fencingToken)) return this.#holdAnew();
        this.#answer(round, { status: 'granted', fencingToken: this.fencingToken });
        continue;
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

  /** It was granted once, and did not know before that lease was over. Others may have held the lock since. */
  #holdAnew(): void {
    this.#state = 'contending';
    this.#look();
  }

  #win(): void {
    const { majority, nodes, fencing } = this.deps;
    const votes = this.#standing;
    if (votes.length < majority) return;
    const stamp = stampOf(votes, majority);
    const fencingToken = tokenOf(votes, majority, this.fencingToken);
    if (!fencing) return this.#conclude(stamp, fencingToken);
    this.#state = 'raising';
    const written = askMajority(nodes, this.deps, {
      send: ({ store }, index) => store.raiseToken(this.atNodes[index]!.ownership, fencingToken),
      enoughNos: enoughToDeny(nodes.length),
    });
    written.then(
      (isWritten) => {
        if (isWritten) this.#conclude(stamp, fencingToken);
        else this.#notWritten(new LockStoreError('unknown', 'votes were lost while the fencing token was written'));
      },
      (error: unknown) => this.#notWritten(asStoreError(error)),
    );
  }

  #conclude(stamp: number, fencingToken: number): void {
    if (this.isOver) return;
    this.#state = 'held';
    this.#heldSince = this.deps.clock.now();
    this.fencingToken = fencingToken;
    this.#patience.end();
    const answered = [...this.#rounds].filter(({ sentAt }) => sentAt <= stamp);
    for (const round of answered) this.#answer(round, { status: 'granted', fencingToken });
    const { resource, id: owner } = this.ownership;
    if (answered.length > 0) return this.#look();
    const isFor = (other: string): boolean => other === owner;
    this.deps.granted({ resource, fencingToken, sentAt: stamp, isFor });
    this.#look();
  }

  /** The next attempt tries again. */
  #notWritten(error: LockStoreError): void {
    if (this.isOver) return;
    this.#state = 'contending';
    this.#reject(error);
  }

  #reject(error: LockStoreError): void {
    for (const round of this.#rounds) round.reply.reject(error);
    this.#rounds.clear();
  }

  #answer(round: Round, reply: AcquireReply): void {
    this.#rounds.delete(round);
    this.#roundMs = Math.max(1, this.deps.clock.now() - round.beganAt);
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
    // Answers to what was asked before it was granted: messages may be faster than replies.
    if (isHeld && round.beganAt <= this.#heldSince) return this.#answer(round, refusal);
    if (isHeld) this.#state = 'contending';
    if (refusal.status !== 'queued') this.#withdraw();
    this.#answer(round, refusal);
    this.#considerPassingVotesOn();
  }

  /** Releases everything everywhere, also where it is not known whether there is anything. */
  #withdraw(): void {
    this.lostVotes = this.votes;
    for (const seat of this.atNodes) seat.withdraw(this.leaseMs);
  }

  #considerPassingVotesOn(): void {
    const { votes } = this;
    if (this.#state !== 'contending' || !this.#queueing || votes === 0) this.#patience.end();
    else this.#patience.wait(this.#roundMs, votes);
  }
}
