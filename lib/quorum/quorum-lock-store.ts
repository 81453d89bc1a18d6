import { Alarms } from '../core/util/alarms.js';
import type { Clock } from '../core/util/clock.js';
import {
  type AcquireReply,
  type GrantListener,
  type LockState,
  type LockStore,
  LockStoreError,
  asStoreError,
  type LockOwner,
  type PushedGrant,
  type Queueing,
  type RotateReply,
  type Transfer,
} from '../core/store/lock-store.js';
import { pause } from '../core/util/pause.js';
import type { Candidate } from './candidate.js';
import type { QuorumDeps } from './deps.js';
import { Candidates } from './candidates.js';
import { type QuorumMember, QuorumNode, type QuorumTiming } from './node.js';
import { forceReleaseOnNodes, inspectNodes, listOnNodes } from './operators.js';
import { releaseAtNodes } from './release.js';
import { renewAtNodes } from './renewal.js';
import { transferAtNodes } from './transfer.js';
import { askMajority, enoughToDeny, majorityOf, majorityTrouble } from './majority.js';
import type { Random } from '../core/util/random.js';

export interface QuorumLockStoreOptions {
  /** 1 to 9 stores that know nothing of each other, all with the same `instanceId` and `clientId`. */
  readonly nodes: readonly QuorumMember[];
  readonly clock: Clock;
  readonly random: Random;
  /** How long a node may take for an answer, in milliseconds. */
  readonly nodeTimeoutMs: number;
  /** Whether fencing tokens grow whatever minority of nodes has failed. One more round trip for each lease. @default false */
  readonly fencing?: boolean;
}

const NO_SEMAPHORES =
  'semaphores are not safe over a quorum: the majorities of more holders than there are permits can overlap. Keep semaphores on one Redis, ' +
  'by a second registration of the module with a connection and a name';

/** How often somebody asks who does not wait, where the votes were split. */
const MOST_TRIES = 3;

/**
 * Locks that a majority of independent stores has granted (Redlock). Each node keeps its own queue and its own fencing tokens; who has
 * the votes of a majority holds the lock. Leases count from when the command was sent, so that the time the nodes took is theirs.
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ (the algorithm)
 */
export class QuorumLockStore implements LockStore {
  readonly instanceId: string;
  readonly clientId: string;
  readonly noSemaphores = NO_SEMAPHORES;
  readonly nodes: readonly QuorumNode[];
  readonly #deps: QuorumDeps;
  readonly #candidates: Candidates;
  readonly #listeners: GrantListener[] = [];

  constructor({ nodes, clock, random, nodeTimeoutMs, fencing = false }: QuorumLockStoreOptions) {
    const alarms = new Alarms(clock);
    const timing = { clock, alarms, timeoutMs: nodeTimeoutMs };
    this.nodes = nodes.map((node) => new QuorumNode(node, timing));
    ({ instanceId: this.instanceId, clientId: this.clientId } = nodes[0]!.store);
    const majority = majorityOf(nodes.length);
    const granted = (grant: PushedGrant) => this.#listeners.forEach((listener) => listener.granted(grant));
    let attempts = 0;
    const newAttempt = () => ++attempts;
    this.#deps = { ...timing, nodes: this.nodes, majority, random, fencing, granted, newAttempt };
    this.#candidates = new Candidates(this.#deps);
    this.nodes.forEach((node, index) => {
      node.store.listen({
        granted: (grant) => this.#onGrantMessage(index, grant),
        reconnected: () => this.#listeners.forEach((listener) => listener.reconnected()),
      });
    });
  }

  get timing(): QuorumTiming {
    return this.#deps;
  }

  /** How many owners it keeps in mind. */
  get size(): number {
    return this.#candidates.size;
  }

  /** How many commands have a time-out that still runs, and contenders a pause. */
  get alarms(): number {
    return this.#deps.alarms.size;
  }

  acquire(contender: LockOwner, leaseMs: number, queueing?: Queueing): Promise<AcquireReply> {
    if (contender.mode === 'semaphore') return Promise.reject(semaphoreRefused());
    const candidate = this.#candidates.open(contender);
    return queueing ? candidate.acquire(leaseMs, queueing) : this.#acquireNow(candidate, leaseMs);
  }

  /** Nobody wakes one who does not wait: where some votes were to be had but too few, it asks once more, after a random pause. */
  async #acquireNow(candidate: Candidate, leaseMs: number): Promise<AcquireReply> {
    const { clock, random, timeoutMs } = this.#deps;
    for (let tries = 1; ; tries++) {
      const reply = await candidate.acquire(leaseMs, undefined);
      const isSplit = reply.status === 'busy' && candidate.lostVotes > 0 && candidate.roundMs < timeoutMs / 2;
      if (!isSplit || tries === MOST_TRIES) return reply;
      await pause(clock, candidate.roundMs * 2 ** tries * random.fraction());
      if (candidate.isOver) return reply;
    }
  }

  async rotate(owner: LockOwner, contender: LockOwner, leaseMs: number, queueing: Queueing): Promise<RotateReply> {
    if (contender.mode === 'semaphore') throw semaphoreRefused();
    const leaving = this.#candidates.get(owner.id);
    const candidate = this.#candidates.open(contender);
    candidate.atNodes.forEach((seat, index) => {
      seat.leaving ??= leaving?.atNodes[index]?.ownership ?? owner;
    });
    leaving?.end();
    this.#candidates.delete(owner.id);
    let nos = 0;
    const heed = (wasHeld: boolean): void => void (wasHeld || nos++);
    const next = await candidate.acquire(leaseMs, queueing, heed).catch((error: unknown) => {
      // The next one has given up meanwhile. What has not answered yet is asked to release the first one, in the background.
      const reason = asStoreError(error);
      if (candidate.isOver && reason.failure === 'unknown') return reason;
      throw reason;
    });
    return { released: nos < enoughToDeny(this.nodes.length), next };
  }

  setDepth(ownership: LockOwner, depth: number, leaseMs: number): Promise<boolean> {
    this.#candidates.get(ownership.id)?.touch(leaseMs);
    return this.#decide(ownership, ({ store }, name) => store.setDepth(name, depth, leaseMs));
  }

  renew(ownership: LockOwner, leaseMs: number, exactly?: boolean): Promise<boolean> {
    const holder = this.#candidates.get(ownership.id) ?? this.#candidates.adopt(ownership, leaseMs);
    return renewAtNodes(holder, leaseMs, exactly, this.#deps);
  }

  async release(ownership: LockOwner, lazily?: boolean): Promise<boolean> {
    const contender = this.#candidates.get(ownership.id);
    const wasHeld = await releaseAtNodes(ownership, contender, lazily, this.#deps);
    this.#candidates.delete(ownership.id);
    return wasHeld;
  }

  /** Releases what this id may have, in the background. It may ask again: it has another name at the nodes then. */
  abandon({ id: owner }: LockOwner): void {
    this.#candidates.get(owner)?.abandon();
  }

  verify(ownership: LockOwner): Promise<boolean> {
    return this.#decide(ownership, ({ store }, name) => store.verify(name));
  }

  async downgrade(ownership: LockOwner, leaseMs: number): Promise<boolean> {
    const isReader = await this.#decide(ownership, ({ store }, name) => store.downgrade(name, leaseMs));
    if (isReader) for (const seat of this.#candidates.get(ownership.id)?.atNodes ?? []) seat.mode = 'read';
    return isReader;
  }

  raiseToken(ownership: LockOwner, fencingToken: number): Promise<boolean> {
    return this.#decide(ownership, ({ store }, name) => store.raiseToken(name, fencingToken));
  }

  async transfer(ownership: LockOwner, transfer: Transfer): Promise<number | null> {
    const holder = this.#candidates.get(ownership.id);
    const token = await transferAtNodes(ownership, transfer, holder, this.#deps);
    if (token !== null && !transfer.share) {
      holder?.end();
      this.#candidates.delete(ownership.id);
    }
    return token;
  }

  /** Refused: the votes for the holders of so many permits may overlap, so that there are more holders than permits. */
  resize(): Promise<boolean> {
    return Promise.reject(semaphoreRefused());
  }

  fenceOf(resource: string): string {
    return this.nodes[0]!.store.fenceOf(resource);
  }

  trouble(resource: string): LockStoreError | undefined {
    return majorityTrouble(this.nodes, resource);
  }

  inspect(resource: string): Promise<LockState> {
    return inspectNodes(this.nodes, this.#deps, resource);
  }

  list(prefix: string, limit: number, signal?: AbortSignal): Promise<string[]> {
    return listOnNodes(this.nodes, this.#deps, prefix, limit, signal);
  }

  forceRelease(resource: string, fencingToken: number): Promise<boolean> {
    return forceReleaseOnNodes(this.nodes, this.#deps, resource, fencingToken);
  }

  listen(listener: GrantListener): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.close()));
    this.#deps.alarms.stop();
  }

  /** Asks each node about its own name of this id. */
  #decide(ownership: LockOwner, send: (node: QuorumNode, name: LockOwner) => Promise<boolean>): Promise<boolean> {
    const seats = this.#candidates.get(ownership.id)?.atNodes;
    return askMajority(this.nodes, this.#deps, {
      send: (node, index) => send(node, seats?.[index]?.ownership ?? ownership),
    });
  }

  #onGrantMessage(index: number, grant: PushedGrant): void {
    for (const contender of this.#candidates.of(grant.resource)) if (contender.onGrantMessage(index, grant)) return;
    this.nodes[index]!.hear(grant);
  }
}

function semaphoreRefused(): LockStoreError {
  return new LockStoreError('refused', NO_SEMAPHORES);
}
