import {
  type AcquireReply,
  LockStoreError,
  type LockOwner,
  type PushedGrant,
  type Queueing,
} from '../core/store/lock-store.js';
import type { QuorumNode } from './node.js';
import type { Vote } from './vote.js';

/** How one contender, or holder, stands at one node. */
export class CandidateAtNode {
  vote: Vote | undefined;
  /** What is to be handed back there in the same step, until that was answered. */
  leaving: LockOwner | undefined;
  /** Whether it may be held, or waited for, there. */
  isTaken = false;
  #isLeaving = false;
  #refused: LockOwner | undefined;
  /** How many questions may still be executed that were asked under the name it has. */
  #unanswered = 0;
  /** The largest token that a message has named, for the name it has. */
  #heardToken = 0;
  #isOver = false;
  #ownership: LockOwner;

  /** @param newName one that nobody ever had: what is known to it by another name cannot be freed or held by this one */
  constructor(
    readonly node: QuorumNode,
    ownership: LockOwner,
    private readonly newName: () => LockOwner,
  ) {
    this.#ownership = ownership;
  }

  /** What it is called there. */
  get ownership(): LockOwner {
    return this.#ownership;
  }

  /** Stands in the queue, or holds, as something else from now on. */
  set mode(mode: LockOwner['mode']) {
    this.#ownership = { ...this.#ownership, mode };
  }

  /** Whether this is what it is called there now. */
  isCalled({ id: owner }: LockOwner): boolean {
    return owner === this.#ownership.id;
  }

  /** @param stamp when the command was sent that this is the answer to */
  onReply(reply: AcquireReply, stamp: number): void {
    if (reply.status === 'granted') {
      this.onGrant({ fencingToken: reply.fencingToken, stamp });
      return;
    }
    this.#forgetBefore(stamp);
    this.isTaken = reply.status === 'queued' || this.vote !== undefined;
  }

  /** Whether a grant is for the name it has there now. */
  isMeant(grant: PushedGrant): boolean {
    return grant.isFor(this.#ownership.id);
  }

  /**
   * A message says that it has the vote.
   *
   * @returns whether that is new. Whoever may use the channels can repeat a message, also after the vote was forgotten
   */
  onGrantMessage(vote: Vote): boolean {
    if (vote.fencingToken <= this.#heardToken) return false;
    this.#heardToken = vote.fencingToken;
    return this.onGrant(vote);
  }

  /** It has the vote. Returns whether that is new. */
  onGrant(vote: Vote): boolean {
    if (this.vote && this.vote.stamp >= vote.stamp) return false;
    this.vote = vote;
    return true;
  }

  /** A question has been executed that was asked under this name, or never will be. */
  answered(name: LockOwner): void {
    if (!this.#isOver && this.isCalled(name)) this.#unanswered--;
    else this.node.answered(name);
  }

  /**
   * It asks no more.
   *
   * @param isForgotten whether its place there is not released
   */
  end(leaseMs: number, isForgotten: boolean): void {
    if (this.#isOver) return;
    if (isForgotten && this.isTaken) this.#unanswered++;
    this.#depart(leaseMs);
    this.#isOver = true;
  }

  /** Nobody has its name any more. What is granted to that all the same is given back. */
  #depart(leaseMs: number): void {
    if (this.#unanswered > 0) this.node.expectLate(this.#ownership, leaseMs, this.#unanswered);
    this.#unanswered = 0;
  }

  /** No answer came, and nobody knows how long an earlier grant will go on to last. */
  onNoReply(stamp: number, mayBeTaken: boolean): void {
    this.#forgetBefore(stamp);
    if (!mayBeTaken) this.isTaken = false;
  }

  /** A message may have been faster than a reply: then its grant came after it. Stamps of messages are rounded down. */
  #forgetBefore(stamp: number): void {
    if (this.vote && this.vote.stamp < Math.floor(stamp)) this.vote = undefined;
  }

  /**
   * A release is sent with its name, so it needs another one: a release that comes late could free what is granted by then.
   *
   * @returns the name it had
   */
  rename(leaseMs: number): LockOwner {
    const before = this.#ownership;
    this.#depart(leaseMs);
    this.#ownership = this.newName();
    this.#heardToken = 0;
    this.vote = undefined;
    return before;
  }

  /** Hands the vote to whoever is next there, and stands in the queue again. */
  passVoteOn(leaseMs: number): void {
    this.leaving = this.rename(leaseMs);
  }

  /** A release is sent that is the end of it. */
  leave(): void {
    this.#isLeaving = true;
  }

  /** Whether the release has found the lock to be held. */
  left(wasHeld: boolean, leaseMs: number): void {
    this.#isLeaving = false;
    if (!wasHeld && this.#refused) this.node.withdraw(this.#refused, leaseMs);
    this.#refused = undefined;
  }

  /**
   * Something was granted that is not wanted any more. Where the release is under way that was sent after it, that one has freed it; but
   * commands may overtake one another.
   */
  refuse(name: LockOwner, leaseMs: number): void {
    if (this.#isLeaving && name.id === this.#ownership.id) this.#refused = name;
    else this.node.withdraw(name, leaseMs);
  }

  /** Releases what it may have there, and begins anew. */
  withdraw(leaseMs: number): void {
    if (this.leaving) this.node.withdraw(this.leaving, leaseMs);
    this.leaving = undefined;
    if (!this.isTaken) return;
    this.isTaken = false;
    this.node.withdraw(this.rename(leaseMs), leaseMs);
  }

  /** @param left told whether what is handed back was still held */
  ask(leaseMs: number, queueing: Queueing | undefined, left?: (wasHeld: boolean) => void): Promise<AcquireReply> {
    const { leaving, ownership, node } = this;
    this.isTaken = true;
    this.#unanswered++;
    if (!leaving || !queueing) return node.store.acquire(ownership, leaseMs, queueing);
    return node.store.rotate(leaving, ownership, leaseMs, queueing).then(({ released, next }) => {
      left?.(released);
      if (this.leaving === leaving) this.leaving = undefined;
      if (next instanceof LockStoreError) throw next;
      return next;
    });
  }
}

/** What an id is called in a later attempt. In the first one it has the name that other processes know as well. */
export function nameOf(owner: string, attempt: number): string {
  return `${owner}.${attempt}`;
}
