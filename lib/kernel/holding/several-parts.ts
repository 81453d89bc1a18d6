import type { ResolvedLockOptions } from '../api/lock-options.js';
import type { AcquireReply, LockOwner, Queueing } from '../store/lock-store.js';
import { asStoreError } from '../store/store-error.js';
import { createOwner } from '../store/ask.js';
import type { Hold } from './hold.js';
import type { Runtime } from './runtime.js';
import { LABEL_AFTER_MS } from './labels.js';
import { StoreLease, validUntil } from './store-lease.js';

/**
 * The maximum number of resources in one round trip. The first one counts once all are answered, within one
 * `attemptTimeoutMs`.
 */
const MAX_AT_ONCE = 256;

interface SeveralWanted {
  /** In the order in which they are acquired. */
  readonly names: readonly string[];
  readonly leases: readonly { readonly hold: Hold }[];
  readonly options: ResolvedLockOptions;
  /** `true` if it may be asked for before its turn: this call and this process have nothing to do with it yet. */
  isOpen(name: string): boolean;
  /** Returns the label to store; see {@link LockOwner}. */
  labelOf(name: string): string | undefined;
}

/** The commands for parts behind the one whose turn it is, sent together with its own. */
interface Attempt {
  readonly owners: readonly LockOwner[];
  readonly sentAt: number;
}

/**
 * The resources that a call wants after the one it asks for. It asks for them in the same round trip, by commands that
 * take only what is free and leave the queues alone. The granted parts without a gap stay here until their turn comes;
 * parts after the first refusal are released at once, and asked for again when their turn comes. So while a call waits
 * for a part, it holds the parts before it and, after one round trip, none after it: no two calls wait for each other.
 */
export class SeveralParts {
  /** The resource that was last asked for together with others. */
  #asked: string | undefined;
  #attempt: Attempt | undefined;
  readonly #granted = new Map<string, StoreLease>();

  constructor(
    private readonly wanted: SeveralWanted,
    private readonly deps: Pick<Runtime, 'store' | 'clock' | 'random' | 'orphanReleases'>,
  ) {}

  get leases(): readonly { readonly hold: Hold }[] {
    return this.wanted.leases;
  }

  /** Asks for a part, and the first time also for the ones after it. @returns the answer to the first one */
  acquire(first: LockOwner, leaseMs: number, sentAt: number, queueing?: Queueing): Promise<AcquireReply> {
    const { store } = this.deps;
    const owners = this.#asked === first.resource ? [] : this.#ownersBehind(first.resource, queueing !== undefined);
    this.#asked = first.resource;
    const reply = store.acquire(first, leaseMs, queueing);
    if (owners.length === 0) return this.#alone(reply);
    const attempt = { owners, sentAt };
    this.#attempt = attempt;
    const later = owners.map((owner) => store.acquire(owner, leaseMs));
    return this.#together(reply, later, attempt);
  }

  /** Takes the early grant of a part. */
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

  /** Releases the rest, because the call ends. */
  giveUp(): void {
    this.#abandon();
    for (const { owner } of this.#granted.values()) this.#release(owner);
    this.#granted.clear();
  }

  /** A part alone. What was asked for together with others before may have no answer yet. */
  #alone(reply: Promise<AcquireReply>): Promise<AcquireReply> {
    const attempt = this.#attempt;
    if (attempt === undefined) return reply;
    return reply.then((answer) => {
      // The call waits, and holds none behind: one silent node of a cluster keeps back the answers of all the others.
      if (answer.status !== 'granted' && this.#attempt === attempt) this.#abandon();
      return answer;
    });
  }

  async #together(
    reply: Promise<AcquireReply>,
    later: readonly Promise<AcquireReply>[],
    attempt: Attempt,
  ): Promise<AcquireReply> {
    const [first, ...others] = await Promise.allSettled([reply, ...later]);
    this.#answered(attempt, first.status === 'fulfilled' && first.value.status === 'granted', others);
    if (first.status === 'fulfilled') return first.value;
    throw first.reason;
  }

  /**
   * A call that does not wait asks only for those in the slot of the first one, whose server answers in order: on two
   * servers, each of two calls could take a resource that the other wants, and both would fail.
   */
  #ownersBehind(name: string, waits: boolean): LockOwner[] {
    const { names, options, isOpen, labelOf } = this.wanted;
    const { store } = this.deps;
    const fence = waits ? undefined : store.fenceOf(name);
    const owners: LockOwner[] = [];
    const from = names.indexOf(name) + 1;
    for (const behind of names.slice(from, from + MAX_AT_ONCE - 1)) {
      // In the order of the names: the parts after a gap would be held too early.
      if (this.#granted.has(behind) || !isOpen(behind)) break;
      if (fence !== undefined && store.fenceOf(behind) !== fence) break;
      owners.push(createOwner(behind, { ...options, label: labelOf(behind) }, this.deps));
    }
    return owners;
  }

  #answered(attempt: Attempt, isFirstGranted: boolean, replies: readonly PromiseSettledResult<AcquireReply>[]): void {
    const { clock } = this.deps;
    const { options } = this.wanted;
    const { owners, sentAt } = attempt;
    const isWanted = this.#attempt === attempt;
    if (isWanted) this.#attempt = undefined;
    const now = clock.now();
    let isNext = isFirstGranted && isWanted && now < validUntil(sentAt, options.leaseMs);
    for (const [index, owner] of owners.entries()) {
      const reply = replies[index]!;
      const granted = reply.status === 'fulfilled' && reply.value.status === 'granted' ? reply.value : undefined;
      isNext &&= granted !== undefined;
      if (isNext) {
        this.#granted.set(owner.resource, new StoreLease(owner, granted!.fencingToken, sentAt, options, clock, now));
      } else if (granted || (reply.status === 'rejected' && asStoreError(reply.reason).failure === 'unknown')) {
        this.#release(owner);
      }
    }
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
