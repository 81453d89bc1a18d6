import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { AcquireReply, LockOwner, Queueing } from '../store/lock-store.js';
import { asStoreError } from '../store/store-error.js';
import { createOwner } from '../store/ask.js';
import type { Hold } from './hold.js';
import type { Runtime } from './runtime.js';
import { LABEL_AFTER_MS } from './labels.js';
import { StoreLease, validUntil } from './store-lease.js';

/** How many resources one command acquires at most. Redis does nothing else meanwhile, for half a millisecond. */
const MOST_AT_ONCE = 64;

/** What a call for several resources wants. */
export interface SeveralWanted {
  /** In the order in which they are acquired. */
  readonly names: readonly string[];
  /** The parts that the call has by now. */
  readonly leases: readonly { readonly hold: Hold }[];
  /** Of each part. */
  readonly options: ResolvedLockOptions;
  /** Whether the store can be asked for it before its turn: this call and this process have nothing to do with it yet. */
  isOpen(name: string): boolean;
  /** What is stored with it; see {@link LockOwner}. */
  labelOf(name: string): string | undefined;
}

/** One command for the first of several parts and for some behind it. */
interface Attempt {
  /** Those behind the first one. */
  readonly owners: readonly LockOwner[];
  readonly sentAt: number;
}

/**
 * The resources that a call wants behind the one it asks for. They are acquired in the same round trip where they are
 * free. What was granted stays here until its turn comes, and is released if its turn does not come.
 */
export class SeveralParts {
  /** The resource that was last asked for together with others. */
  #asked: string | undefined;
  /** It has no answer yet. */
  #attempt: Attempt | undefined;
  readonly #granted = new Map<string, StoreLease>();

  constructor(
    private readonly wanted: SeveralWanted,
    private readonly deps: Pick<Runtime, 'store' | 'clock' | 'random' | 'orphanReleases'>,
  ) {}

  get leases(): readonly { readonly hold: Hold }[] {
    return this.wanted.leases;
  }

  /** Asks for a part, and the first time also for those behind it. @returns the answer to the first one */
  acquire(first: LockOwner, leaseMs: number, sentAt: number, queueing?: Queueing): Promise<AcquireReply> {
    const owners = this.#asked === first.resource ? [] : this.#ownersBehind(first.resource);
    this.#asked = first.resource;
    if (owners.length === 0) return this.#acquireAlone(first, leaseMs, queueing);
    const attempt = { owners, sentAt };
    this.#attempt = attempt;
    return this.#acquire(first, attempt, leaseMs, queueing);
  }

  /** What a part was granted before its turn. */
  take(name: string, label: string | undefined): StoreLease | undefined {
    const storeLease = this.#granted.get(name);
    this.#granted.delete(name);
    // The call has got the part before it by another command.
    if (!storeLease) return this.#abandon();
    // A trace was begun for it since.
    if (storeLease.label !== label) {
      storeLease.nextRenewalAt = Math.min(storeLease.nextRenewalAt, this.deps.clock.now() + LABEL_AFTER_MS);
    }
    return storeLease;
  }

  /** The call ends. Releases what is left. */
  giveUp(): void {
    this.#abandon();
    for (const { owner } of this.#granted.values()) this.#release(owner);
    this.#granted.clear();
  }

  /** A part alone. What was asked for together with others before may have no answer yet. */
  #acquireAlone(first: LockOwner, leaseMs: number, queueing: Queueing | undefined): Promise<AcquireReply> {
    const reply = this.deps.store.acquire(first, leaseMs, queueing);
    const attempt = this.#attempt;
    if (attempt === undefined) return reply;
    return reply.then((answer) => {
      // The call waits, and holds none behind: on a cluster, one silent node keeps back the answers of all the others.
      if (answer.status !== 'granted' && this.#attempt === attempt) this.#abandon();
      return answer;
    });
  }

  async #acquire(
    first: LockOwner,
    attempt: Attempt,
    leaseMs: number,
    queueing: Queueing | undefined,
  ): Promise<AcquireReply> {
    const { store } = this.deps;
    try {
      const reply = await store.acquireSeveral!([first, ...attempt.owners], leaseMs, queueing);
      const isGranted = 'status' in reply.first && reply.first.status === 'granted';
      this.#answered(attempt, isGranted, reply.laterTokens);
      if ('status' in reply.first) return reply.first;
      throw reply.first;
    } catch (thrown) {
      const error = asStoreError(thrown);
      this.#failed(attempt, error.failure === 'unknown');
      // It may have been refused for another part, such as one that the ACL forbids: its turn will tell.
      if (error.failure === 'refused') return store.acquire(first, leaseMs, queueing);
      throw error;
    }
  }

  #ownersBehind(name: string): LockOwner[] {
    const { names, options, isOpen, labelOf } = this.wanted;
    const from = names.indexOf(name) + 1;
    const owners: LockOwner[] = [];
    for (const behind of names.slice(from, from + MOST_AT_ONCE - 1)) {
      // In the order of the names: what stands behind it would be held too early.
      if (this.#granted.has(behind) || !isOpen(behind)) break;
      owners.push(createOwner(behind, { ...options, label: labelOf(behind) }, this.deps));
    }
    return owners;
  }

  #answered(attempt: Attempt, isFirstGranted: boolean, tokens: readonly (number | undefined | null)[]): void {
    const { clock } = this.deps;
    const { options } = this.wanted;
    const { sentAt } = attempt;
    const isWanted = this.#attempt === attempt;
    if (isWanted) this.#attempt = undefined;
    const now = clock.now();
    let isNext = isFirstGranted && isWanted && now < validUntil(sentAt, options.leaseMs);
    for (const [index, owner] of attempt.owners.entries()) {
      const token = tokens[index];
      isNext &&= typeof token === 'number';
      if (isNext) this.#granted.set(owner.resource, new StoreLease(owner, token!, sentAt, options, clock, now));
      else if (token !== undefined) this.#release(owner);
    }
  }

  #failed(attempt: Attempt, mayBeExecuted: boolean): void {
    if (this.#attempt === attempt) this.#attempt = undefined;
    if (mayBeExecuted) for (const owner of attempt.owners) this.#release(owner);
  }

  /** Its answer will come too late, if it comes. What it grants then is released once more. */
  #abandon(): undefined {
    for (const owner of this.#attempt?.owners ?? []) this.#release(owner);
    this.#attempt = undefined;
  }

  #release(owner: LockOwner): void {
    this.deps.orphanReleases.start(owner, this.wanted.options);
  }
}
