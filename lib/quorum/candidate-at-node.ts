import type { AcquireReply, LockOwner, Queueing } from '../kernel/store/lock-store.js';
import { LockStoreError } from '../kernel/store/store-error.js';
import type { QuorumNode } from './node.js';

/** A node has granted the lock. */
export interface Vote {
  readonly fencingToken: number;
  /** When the command was sent from which the node counts the lease. */
  readonly stamp: number;
}

/** Called for each node that releases the leaving owner in the same step: whether it still held the lock there. */
export type OnReleased = (wasHeld: boolean) => void;

/** When the lease begins: as late as the votes of a majority allow. */
export function stampOf(votes: readonly Vote[], majority: number): number {
  return votes.map(({ stamp }) => stamp).sort((a, b) => b - a)[majority - 1]!;
}

/**
 * The token of the lease: larger than all earlier ones that these nodes know.
 *
 * @param before the last token of this candidate: it is kept if a majority was never lost
 */
export function tokenOf(votes: readonly Vote[], majority: number, before: number): number {
  const tokens = votes.map(({ fencingToken }) => fencingToken);
  const isSame = tokens.filter((token) => token <= before).length >= majority;
  return isSame ? before : Math.max(...tokens);
}

/**
 * The id of an owner in a later attempt. In the first attempt it is the id itself, which other processes may know as
 * well.
 */
export function idOfAttempt(id: string, attempt: number): string {
  return `${id}.${attempt}`;
}

/** The state of a candidate, or a holder, at one node: a vote, a place in the queue, or nothing. */
export class CandidateAtNode {
  vote: Vote | undefined;
  /** An owner that the node is to release in the same step as the next acquisition; until that is answered. */
  leaving: LockOwner | undefined;
  /** The time at which the node becomes free, if it has sent one since the last command. */
  freeAt: number | undefined;
  /** `true` if the node may have a lock or a place in its queue for this owner. */
  mayBeThere = false;
  #isReleaseSent = false;
  #refused: LockOwner | undefined;
  /** The number of commands for the present owner that the node may still execute. */
  #unanswered = 0;
  /** The largest token that a message has announced to the present owner. */
  #announcedToken = 0;
  #isOver = false;
  #owner: LockOwner;

  /**
   * @param newOwner returns an owner that no node has ever seen: a late release for an earlier one cannot free its lock
   */
  constructor(
    readonly node: QuorumNode,
    owner: LockOwner,
    private readonly newOwner: () => LockOwner,
  ) {
    this.#owner = owner;
  }

  /** The owner by which the node knows this candidate now. */
  get owner(): LockOwner {
    return this.#owner;
  }

  set mode(mode: LockOwner['mode']) {
    this.#owner = { ...this.#owner, mode };
  }

  /** The label to store from now on with its place in the queue, and with its grant. */
  set label(label: string | undefined) {
    this.#owner = { ...this.#owner, label };
  }

  isPresent({ id }: LockOwner): boolean {
    return id === this.#owner.id;
  }

  /** @param stamp when the command was sent that the node has answered */
  onReply(reply: AcquireReply, stamp: number): void {
    if (reply.status === 'granted') {
      this.onGrant({ fencingToken: reply.fencingToken, stamp });
      return;
    }
    this.#forgetBefore(stamp);
    this.mayBeThere = reply.status === 'queued' || this.vote !== undefined;
  }

  /**
   * A message announces the vote. A process that may use the channels can repeat a message, also after the vote was
   * forgotten.
   *
   * @returns whether the vote is new
   */
  onGrantMessage(vote: Vote): boolean {
    if (vote.fencingToken <= this.#announcedToken) return false;
    this.#announcedToken = vote.fencingToken;
    return this.onGrant(vote);
  }

  /** The node has voted for this candidate. Returns whether the vote is new. */
  onGrant(vote: Vote): boolean {
    if (this.vote && this.vote.stamp >= vote.stamp) return false;
    this.vote = vote;
    return true;
  }

  /** A command for this owner was executed, or never will be. */
  onAnswered(owner: LockOwner): void {
    if (!this.#isOver && this.isPresent(owner)) this.#unanswered--;
    else this.node.orphanReleases.late.answered(owner);
  }

  /** No answer came, and it is not known how long an earlier grant still lasts. */
  onNoReply(stamp: number, mayBeThere: boolean): void {
    this.#forgetBefore(stamp);
    if (!mayBeThere) this.mayBeThere = false;
  }

  /** A message may have overtaken a reply: then its grant is the newer one. Stamps of messages are rounded down. */
  #forgetBefore(stamp: number): void {
    if (this.vote && this.vote.stamp < Math.floor(stamp)) this.vote = undefined;
  }

  /** The candidate sends no more commands. */
  end(leaseMs: number, isForgotten: boolean): void {
    if (this.#isOver) return;
    if (isForgotten && this.mayBeThere) this.#unanswered++;
    this.#expectLate(leaseMs);
    this.#isOver = true;
  }

  /** The present owner does not wait any more. What the node grants to it later is released. */
  #expectLate(leaseMs: number): void {
    if (this.#unanswered > 0) this.node.expectLate(this.#owner, leaseMs, this.#unanswered);
    this.#unanswered = 0;
  }

  /**
   * Takes another owner: the present one is released, and a late release would free what the node grants to it by then.
   *
   * @returns the owner before
   */
  #changeOwner(leaseMs: number): LockOwner {
    const before = this.#owner;
    this.#expectLate(leaseMs);
    this.#owner = this.newOwner();
    this.#announcedToken = 0;
    this.vote = undefined;
    return before;
  }

  /** The next request passes the vote to the next in the queue of the node, and joins the end of that queue. */
  passVoteOn(leaseMs: number): void {
    this.leaving = this.#changeOwner(leaseMs);
  }

  onReleaseSent(): void {
    this.#isReleaseSent = true;
  }

  /** @param wasHeld whether the node had the lock when it executed the release */
  onReleaseAnswered(wasHeld: boolean, leaseMs: number): void {
    this.#isReleaseSent = false;
    if (!wasHeld && this.#refused) this.node.releaseOrphan(this.#refused, leaseMs);
    this.#refused = undefined;
  }

  /**
   * Releases a grant that is not wanted any more. A release that is under way was sent later and probably frees it; but
   * commands may overtake one another, so its answer decides.
   */
  refuse(owner: LockOwner, leaseMs: number): void {
    if (this.#isReleaseSent && owner.id === this.#owner.id) this.#refused = owner;
    else this.node.releaseOrphan(owner, leaseMs);
  }

  /** Releases what the candidate may have here, and starts afresh. */
  withdraw(leaseMs: number): void {
    if (this.leaving) this.node.releaseOrphan(this.leaving, leaseMs);
    this.leaving = undefined;
    if (!this.mayBeThere) return;
    this.mayBeThere = false;
    this.node.releaseOrphan(this.#changeOwner(leaseMs), leaseMs);
  }

  ask(leaseMs: number, queueing: Queueing | undefined, released?: OnReleased): Promise<AcquireReply> {
    const { leaving, owner, node } = this;
    this.mayBeThere = true;
    this.freeAt = undefined;
    this.#unanswered++;
    if (!leaving || !queueing) return node.store.acquire(owner, leaseMs, queueing);
    return node.store.rotate(leaving, owner, leaseMs, queueing).then((reply) => {
      released?.(reply.released);
      if (this.leaving === leaving) this.leaving = undefined;
      if (reply.next instanceof LockStoreError) throw reply.next;
      return reply.next;
    });
  }
}
