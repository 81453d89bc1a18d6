import type { Alarm } from './alarms.js';
import {
  type AcquireReply,
  asStoreError,
  LockStoreError,
  type Ownership,
  type PushedGrant,
  type Queueing,
} from './lock-store.js';
import { LOCK_DEFAULTS } from './lock-options.js';
import { Ballot } from './quorum-ballot.js';
import type { QuorumNode, QuorumTiming } from './quorum-node.js';
import { QuorumPatience } from './quorum-patience.js';
import { QuorumRound } from './quorum-round.js';
import { nameOf, QuorumSeat } from './quorum-seat.js';
import { decide } from './quorum-verdict.js';
import { type QuorumVote, stampOf, tokenOf } from './quorum-vote.js';
import type { Random } from './random.js';

export interface QuorumWorkings extends QuorumTiming {
  readonly nodes: readonly QuorumNode[];
  readonly majority: number;
  readonly random: Random;
  /** Whether the largest token of the votes is written back to a majority before anything is granted. */
  readonly fencing: boolean;
  /** Tells of what was granted without having been answered. */
  readonly granted: (grant: PushedGrant) => void;
  /** Another number each time. */
  readonly newAttempt: () => number;
}

/**
 * One owner id at all nodes: it contends for their votes, and holds the lock while a majority of them is its own. Where the
 * votes are split, whoever has too few hands them on, node by node, to those who are next there, after a pause that is
 * random, and longer the more votes it has: votes gather where most of them are. It keeps its place in all other queues.
 */
export class QuorumContender implements Alarm {
  dueAt = 0;
  heapIndex = -1;
  readonly seats: readonly QuorumSeat[];
  /** When it was last heard of. */
  touchedAt = 0;
  leaseMs = 0;
  /** How many votes the last attempt had that was given up. */
  lostVotes = 0;
  /** The token of what it holds, or held last. */
  fencingToken = 0;
  #state: 'contending' | 'raising' | 'held' | 'over' = 'contending';
  #queueing: Queueing | undefined;
  readonly #rounds = new Map<QuorumRound, Ballot<AcquireReply>>();
  readonly #patience: QuorumPatience;
  /** How long the nodes took to answer. */
  #roundMs = 1;

  constructor(
    readonly ownership: Ownership,
    private readonly workings: QuorumWorkings,
    /** Whether it was forgotten: releases of what it had may still be on their way, which must not free what it gets now. */
    isBack = false,
  ) {
    const newName = () => ({ ...ownership, owner: nameOf(ownership.owner, workings.newAttempt()) });
    const name = isBack ? newName() : ownership;
    this.seats = workings.nodes.map((node) => new QuorumSeat(node, name, newName));
    this.touchedAt = workings.clock.now();
    this.#patience = new QuorumPatience(workings.random);
  }

  get votes(): number {
    return this.#standing.length;
  }

  /** Those that cannot have ended since they were given. */
  get #standing(): QuorumVote[] {
    const endedBefore = this.workings.clock.now() - this.leaseMs;
    return this.seats.flatMap(({ vote }) => (vote && vote.stamp > endedBefore ? vote : []));
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
    const { nodes, clock } = this.workings;
    const now = clock.now();
    this.touch(leaseMs);
    this.#queueing = queueing;
    const round = new QuorumRound(this.seats, queueing?.sentAt ?? now, now, queueing);
    const heed = (index: number, reply: AcquireReply) => this.#heed(index, round.names[index]!, round.sentAt, reply);
    const ballot = new Ballot<AcquireReply>(nodes, this.workings, {
      answered: heed,
      failed: (index, error) => this.#missed(index, round, error),
      late: (index, reply) => {
        heed(index, reply);
        this.#look();
        this.#considerYielding();
      },
      counted: () => this.#look(),
    });
    this.#rounds.set(round, ballot);
    ballot.send((_, index) => this.seats[index]!.ask(leaseMs, queueing, left));
    return round.reply.promise;
  }

  /** A node says that it has granted. */
  hear(index: number, { owner, fencingToken, sentAt }: PushedGrant): void {
    const seat = this.seats[index]!;
    const name = { ...this.ownership, owner };
    if (this.isOver || !seat.isCalled(name)) return seat.node.withdraw(name, this.leaseMs);
    seat.hear({ fencingToken, stamp: sentAt });
    this.#look();
    this.#considerYielding();
  }

  /** It holds what it was given elsewhere. */
  static adopt(ownership: Ownership, leaseMs: number, workings: QuorumWorkings): QuorumContender {
    const adopted = new QuorumContender(ownership, workings);
    adopted.#state = 'held';
    adopted.touch(leaseMs);
    for (const seat of adopted.seats) seat.isTaken = true;
    return adopted;
  }

  touch(leaseMs: number): void {
    this.leaseMs = leaseMs;
    this.touchedAt = this.workings.clock.now();
  }

  /** A node does not have it any more while a majority has: it asks for the vote, and waits for it there. */
  regain(index: number): void {
    if (this.#state !== 'held') return;
    this.seats[index]!.vote = undefined;
    this.#ask(index, LOCK_DEFAULTS.maxWaiters);
  }

  /** It gives up what it has, or may have, and may contend anew. */
  abandon(): void {
    if (this.isOver) return;
    this.#state = 'contending';
    this.workings.alarms.cancel(this);
    this.#withdraw();
  }

  /** It contends no more, and holds nothing. What is still granted to it is given back. */
  end(): void {
    this.#state = 'over';
    this.workings.alarms.cancel(this);
    if (this.#rounds.size > 0)
      this.#reject(new LockStoreError('unknown', 'it was released before the nodes had answered'));
  }

  /** It has waited long enough for more votes. */
  ring(): void {
    if (this.#state !== 'contending' || !this.#queueing) return;
    this.#patience.yielded();
    this.seats.forEach((seat, index) => {
      if (!seat.vote) return;
      seat.yield();
      this.#ask(index, this.#queueing!.maxWaiters);
    });
  }

  #ask(index: number, maxWaiters: number): void {
    const seat = this.seats[index]!;
    const name = seat.ownership;
    const sentAt = this.workings.clock.now();
    seat.node.ask(
      () => seat.ask(this.leaseMs, { sentAt, maxWaiters }),
      (reply) => {
        this.#heed(index, name, sentAt, reply);
        this.#look();
        this.#considerYielding();
      },
      () => {}, // whoever asks next asks for this as well
    );
  }

  #heed(index: number, name: Ownership, stamp: number, reply: AcquireReply): void {
    const seat = this.seats[index]!;
    if (!this.isOver && seat.isCalled(name)) seat.heed(reply, stamp);
    else if (reply.status === 'granted' || reply.status === 'queued') seat.refuse(name, this.leaseMs);
  }

  #missed(index: number, { wasTaken, sentAt, names }: QuorumRound, error: LockStoreError): void {
    const seat = this.seats[index]!;
    if (seat.isCalled(names[index]!)) seat.missed(sentAt, wasTaken[index]! || error.failure === 'unknown');
  }

  /** Whether anything is decided now. */
  #look(): void {
    const { majority } = this.workings;
    if (this.#state === 'contending') this.#win();
    if (this.#rounds.size === 0) return;
    for (const [round, ballot] of this.#rounds) {
      if (this.#state === 'raising') return;
      if (this.#state === 'held' && round.granted(ballot) >= majority) {
        if (!round.isStillHeld(ballot, this.fencingToken, majority)) return this.#holdAnew();
        this.#answer(round, { status: 'granted', fencingToken: this.fencingToken });
        continue;
      }
      const votes = this.#state === 'held' ? round.granted(ballot) : this.votes;
      if (votes + this.#pendingWithoutVote(ballot) >= majority) continue;
      const refusal = round.refusal(ballot, majority);
      if (refusal !== undefined) this.#lose(round, refusal);
    }
  }

  #pendingWithoutVote({ answers, failures }: Ballot<AcquireReply>): number {
    const isOpen = (index: number) => answers[index] === undefined && failures[index] === undefined;
    if (this.#state === 'held') return answers.filter((_, index) => isOpen(index)).length;
    return this.seats.filter(({ vote }, index) => !vote && isOpen(index)).length;
  }

  /** It was granted once, and did not know before that lease was over. Others may have held the lock since. */
  #holdAnew(): void {
    this.#state = 'contending';
    this.#look();
  }

  #win(): void {
    const { majority, nodes, fencing } = this.workings;
    const votes = this.#standing;
    if (votes.length < majority) return;
    const stamp = stampOf(votes, majority);
    const fencingToken = tokenOf(votes, majority, this.fencingToken);
    if (!fencing) return this.#conclude(stamp, fencingToken);
    this.#state = 'raising';
    const written = decide(nodes, this.workings, {
      send: ({ store }, index) => store.raiseToken(this.seats[index]!.ownership, fencingToken),
      enoughNos: nodes.length - majority + 1,
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
    this.fencingToken = fencingToken;
    this.workings.alarms.cancel(this);
    const answered = [...this.#rounds.keys()].filter(({ sentAt }) => sentAt <= stamp);
    for (const round of answered) this.#answer(round, { status: 'granted', fencingToken });
    const { resource, owner } = this.ownership;
    if (answered.length === 0) this.workings.granted({ resource, owner, fencingToken, sentAt: stamp });
    this.#look();
  }

  /** The next attempt tries again. */
  #notWritten(error: LockStoreError): void {
    if (this.isOver) return;
    this.#state = 'contending';
    this.#reject(error);
  }

  #reject(error: LockStoreError): void {
    for (const round of this.#rounds.keys()) round.reply.reject(error);
    this.#rounds.clear();
  }

  #answer(round: QuorumRound, reply: AcquireReply): void {
    this.#rounds.delete(round);
    this.#roundMs = Math.max(1, this.workings.clock.now() - round.beganAt);
    round.reply.resolve(reply);
  }

  #lose(round: QuorumRound, refusal: AcquireReply | Error): void {
    const isHeld = this.#state === 'held';
    if (refusal instanceof Error) {
      this.#rounds.delete(round);
      if (!isHeld) this.#withdraw();
      round.reply.reject(refusal);
      return;
    }
    if (isHeld) this.#state = 'contending';
    if (refusal.status !== 'queued') this.#withdraw();
    this.#answer(round, refusal);
    this.#considerYielding();
  }

  /** Releases everything everywhere, also where it is not known whether there is anything. */
  #withdraw(): void {
    this.lostVotes = this.votes;
    for (const seat of this.seats) seat.withdraw(this.leaseMs);
  }

  #considerYielding(): void {
    const { votes } = this;
    const { alarms } = this.workings;
    if (this.#state !== 'contending' || !this.#queueing || votes === 0) return alarms.cancel(this);
    alarms.setIn(this, this.#patience.nextMs(this.#roundMs, votes));
  }
}
