import { Alarms } from '../kernel/util/alarms.js';
import type { Clock, Random } from '../kernel/util/clock.js';
import type {
  AcquireReply,
  LockOwner,
  LockStore,
  Queueing,
  Retention,
  RotateReply,
} from '../kernel/store/lock-store.js';
import {
  onlyListener,
  type PushedGrant,
  type PushedNotice,
  type StoreListener,
} from '../kernel/store/message-health.js';
import { asStoreError, LockStoreError } from '../kernel/store/store-error.js';
import { pause } from '../kernel/util/promises.js';
import type { Candidate } from './candidate.js';
import { Candidates } from './candidates.js';
import { AskedNodes, ownerAt, releaseAtNodes, renewAtNodes } from './commands.js';
import { askMajority, enoughToDeny, majorityOf } from './majority.js';
import { type QuorumDeps, type QuorumMember, QuorumNode } from './node.js';

interface QuorumLockStoreOptions {
  /** 1 to 9 independent stores, all with the same `instanceId` and `clientId`. */
  readonly nodes: readonly QuorumMember[];
  readonly clock: Clock;
  readonly random: Random;
  /** A node that takes longer than this to answer counts as one that does not answer, in milliseconds. */
  readonly nodeTimeoutMs: number;
  /**
   * Makes fencing tokens grow even if any minority of the nodes fails. Costs one more round trip per lease.
   *
   * @default false
   */
  readonly fencing?: boolean;
}

const NO_SEMAPHORES =
  'a quorum keeps no semaphores: the majorities of several holders can overlap, so it could grant more permits than ' +
  'there are. Keep semaphores on one Redis: register the module a second time, with its own connection and service';

const NO_SUPERSEDING =
  'each node of a quorum has a queue of its own, so the nodes could disagree about which call is the newest. Use one ' +
  'Redis for these locks: register the module a second time, with its own connection and service';

const NO_ROLL_CALLS =
  'a quorum has no roll calls: a process may receive messages from only some of the nodes, and no single node knows which processes ' +
  'there are. inspect() and explain() ask all nodes about one resource, and health() and contention() cover one process';

/** The number of attempts of a call that does not wait when the votes are split. */
const MAX_TRIES = 3;

/**
 * Locks that a majority of independent stores has granted (Redlock). Each node keeps its own queue and its own fencing
 * tokens. A candidate with the votes of a majority holds the lock. A lease is counted from when the command was sent:
 * the time the nodes took to answer is never added to it.
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ (the algorithm)
 */
export class QuorumLockStore extends AskedNodes implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  readonly location: string;
  readonly noSemaphores = NO_SEMAPHORES;
  readonly noRollCalls = NO_ROLL_CALLS;
  readonly noSuperseding = NO_SUPERSEDING;
  readonly nodes: readonly QuorumNode[];
  readonly quorum: QuorumDeps;
  readonly #candidates: Candidates;
  #listener: StoreListener | undefined;

  constructor({ nodes, clock, random, nodeTimeoutMs, fencing = false }: QuorumLockStoreOptions) {
    super();
    const alarms = new Alarms(clock);
    const timing = { clock, alarms, timeoutMs: nodeTimeoutMs };
    this.nodes = nodes.map((node) => new QuorumNode(node, timing));
    ({ instanceId: this.instanceId, clientId: this.clientId } = nodes[0]!.store);
    this.location = JSON.stringify(nodes.map(({ store }) => store.location ?? '').toSorted());
    const majority = majorityOf(nodes.length);
    const granted = (grant: PushedGrant) => this.#listener?.granted(grant);
    const retained = (notice: PushedNotice) => this.#listener?.retained?.(notice);
    let attempts = 0;
    const newAttempt = () => ++attempts;
    this.quorum = { ...timing, nodes: this.nodes, majority, random, fencing, granted, retained, newAttempt };
    this.#candidates = new Candidates(this.quorum);
    this.nodes.forEach((node, index) => {
      node.store.listen({
        granted: (grant) => this.#onGrantMessage(index, grant),
        retained: (notice) => this.#onRetained(index, notice),
        // Free at one node; the next answer counts the nodes.
        freed: (message) => this.#listener?.freed?.({ ...message, mark: undefined }),
        reconnected: () => {
          this.nodes[index]!.orphanReleases.reconnected();
          this.#listener?.reconnected();
        },
      });
    });
  }

  get size(): number {
    return this.#candidates.size;
  }

  acquire(owner: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    if (owner.mode === 'semaphore') return Promise.reject(semaphoreRefused());
    const candidate = this.#candidates.open(owner);
    if (owner.label !== candidate.owner.label) candidate.label(owner.label);
    return queueing ? candidate.acquire(leaseMs, queueing) : this.#acquireNow(candidate, leaseMs);
  }

  /**
   * No grant wakes a call that does not wait. If it had some votes, but too few, it asks again after a random pause.
   */
  async #acquireNow(candidate: Candidate, leaseMs: number): Promise<AcquireReply> {
    const { clock, random, timeoutMs } = this.quorum;
    for (let tries = 1; ; tries++) {
      const reply = await candidate.acquire(leaseMs, undefined);
      const isSplit = reply.status === 'busy' && candidate.lostVotes > 0 && candidate.roundMs < timeoutMs / 2;
      if (!isSplit || tries === MAX_TRIES) return reply;
      await pause(clock, candidate.roundMs * 2 ** tries * random.fraction());
      if (candidate.isOver) return reply;
    }
  }

  async rotate(owner: LockOwner, next: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    if (next.mode === 'semaphore') throw semaphoreRefused();
    const holder = this.#candidates.get(owner.id);
    const candidate = this.#candidates.open(next);
    candidate.atNodes.forEach((atNode, index) => {
      atNode.leaving ??= ownerAt(index, owner, holder);
    });
    holder?.end();
    this.#candidates.delete(owner.id);
    let nos = 0;
    const countNo = (wasHeld: boolean): void => void (wasHeld || nos++);
    const reply = await candidate.acquire(leaseMs, queueing, countNo).catch((error: unknown) => {
      // If the next caller has given up, the lock of the first one is still released, in the background.
      const reason = asStoreError(error);
      if (candidate.isOver && reason.failure === 'unknown') return reason;
      throw reason;
    });
    return { released: nos < enoughToDeny(this.nodes.length), next: reply };
  }

  setDepth(owner: LockOwner, depth: number, leaseMs: number): Promise<boolean> {
    this.#candidates.get(owner.id)?.touch(leaseMs);
    return this.#ask(owner, ({ store }, present) => store.setDepth(present, depth, leaseMs));
  }

  renew(owner: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean> {
    const holder = this.#candidates.get(owner.id);
    // Forgotten, because it was silent for longer than its lease; or released.
    return holder ? renewAtNodes(holder, leaseMs, exactly, this.quorum) : Promise.resolve(false);
  }

  async release(owner: LockOwner, lazily?: boolean, retention?: Retention): Promise<boolean> {
    const candidate = this.#candidates.get(owner.id);
    const wasHeld = await releaseAtNodes(owner, candidate, lazily, this.quorum, retention);
    this.#candidates.delete(owner.id);
    return wasHeld;
  }

  /**
   * Each node leaves the resource taken by its own clock. A node may have voted long before the majority, so the time
   * is counted from the majority if this process knows when that was.
   */
  retain(owner: LockOwner, retention: Retention, lazily?: boolean): Promise<boolean> {
    const hasWon = this.#candidates.get(owner.id)?.hasWon;
    return this.release(owner, lazily, hasWon ? { leftMs: retention.leftMs } : retention);
  }

  /**
   * Releases what this owner may have, in the background. The owner may ask again: the nodes then know it by another
   * id.
   */
  abandon({ id }: LockOwner): void {
    this.#candidates.get(id)?.abandon();
  }

  label(owner: LockOwner, label: string | undefined, lazily?: boolean): Promise<boolean> {
    // Even if a node votes again.
    this.#candidates.get(owner.id)?.label(label);
    return this.#ask(owner, ({ store }, present) => store.label(present, label, lazily));
  }

  verify(owner: LockOwner): Promise<boolean> {
    return this.#ask(owner, ({ store }, present) => store.verify(present));
  }

  async downgrade(owner: LockOwner, leaseMs: number): Promise<boolean> {
    const isReader = await this.#ask(owner, ({ store }, present) => store.downgrade(present, leaseMs));
    if (isReader) for (const atNode of this.#candidates.get(owner.id)?.atNodes ?? []) atNode.mode = 'read';
    return isReader;
  }

  raiseToken(owner: LockOwner, fencingToken: number): Promise<boolean> {
    return this.#ask(owner, ({ store }, present) => store.raiseToken(present, fencingToken));
  }

  lowerPermits(): Promise<boolean> {
    return Promise.reject(semaphoreRefused());
  }

  resize(): Promise<boolean> {
    return Promise.reject(semaphoreRefused());
  }

  listen(listener: StoreListener): void {
    this.#listener = onlyListener(this.#listener, listener);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all(this.nodes.map((node) => node.close()));
    this.quorum.alarms.stop();
  }

  /** Asks each node about the owner by which it knows the lock. */
  #ask(owner: LockOwner, send: (node: QuorumNode, owner: LockOwner) => Promise<boolean>): Promise<boolean> {
    const candidate = this.#candidates.get(owner.id);
    return askMajority(this.quorum, { send: (node, index) => send(node, ownerAt(index, owner, candidate)) });
  }

  #onRetained(index: number, notice: PushedNotice): void {
    for (const candidate of this.#candidates.of(notice.resource)) candidate.onRetained(index, notice);
  }

  #onGrantMessage(index: number, grant: PushedGrant): void {
    for (const candidate of this.#candidates.of(grant.resource)) if (candidate.onGrantMessage(index, grant)) return;
    this.nodes[index]!.orphanReleases.hear(grant, () => false);
  }
}

function semaphoreRefused(): LockStoreError {
  return new LockStoreError('refused', NO_SEMAPHORES);
}
