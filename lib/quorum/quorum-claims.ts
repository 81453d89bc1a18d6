import { backoff, type Clock, type Random } from '../kernel/util/clock.js';
import { LockStoreError } from '../kernel/store/store-error.js';
import type { LockOwner } from '../kernel/store/lock-store.js';
import { pause } from '../kernel/util/promises.js';
import type { JobClaims } from '../features/jobs/core/job-store.js';
import type { QuorumLockStore } from './quorum-lock-store.js';
import { askAll } from './commands.js';
import {
  type ClaimChange,
  type ClaimEnd,
  type ClaimNode,
  claimText,
  type DueRefusal,
  FINISHED,
  isClaimOf,
  readClaim,
  RETURNED,
  type Tick,
  type TickClaim,
  type TickReply,
} from '../features/jobs/core/job-claims.js';

/** The number of times that a claim checks for claims of other instances, and the pauses in between. */
const MAX_LOOKS = 4;
const PAUSE_MS = { first: 20, longest: 160 };
/** The number of times that an instance rewrites its claim after a split. */
const MAX_SPLITS = 10;

/** The text of the claim at each node, `null` for none; `undefined` for a node that has not answered. */
type ClaimTexts = readonly (string | null | undefined)[];

interface Claims {
  /** Claims of this owner, of other owners, and returned ones. */
  readonly mine: readonly string[];
  readonly others: readonly string[];
  readonly returned: readonly string[];
  readonly isFinished: boolean;
  /** The number of nodes that have no claim, and whose clock lets the tick start. */
  readonly open: number;
  /** Why one of the nodes without a claim refuses the tick. */
  readonly refusal: DueRefusal | undefined;
}

/**
 * Claims of ticks on a majority of nodes. The instance with the job's lock decides alone what happens to a tick. While
 * an earlier run holds that lock, the majority that has written first decides.
 *
 * Each node judges by its own clock whether a tick is late or early, and a majority decides. Any two majorities have a
 * node in common, and that node accepts a tick only once (see `windowMs` in singleton-run-options.ts): so no tick starts twice. A tick that a
 * majority refuses is not written anywhere.
 */
export class QuorumClaims implements JobClaims {
  readonly #majority: number;

  /** @param claims the claims at each node of the store, in the order of the nodes */
  constructor(
    private readonly store: QuorumLockStore,
    private readonly claims: readonly ClaimNode[],
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    this.#majority = store.quorum.majority;
  }

  async claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
    const { owner, leaseMs, claimTtlMs, takeOver } = claim;
    for (let looks = 1; ; looks++) {
      const lock = await this.store.acquire(owner, leaseMs);
      if (lock.status === 'granted') {
        const reply = await this.#decideAlone(tick, claim, lock.fencingToken);
        if (reply.status !== 'granted') this.store.abandon(owner);
        return reply;
      }
      const { ttlMs } = lock;
      // An instance that watches a claim makes the nodes keep it, however long the run takes.
      const look = takeOver === 'nothing' ? newLook(claim) : { owner: owner.id, claimTtlMs };
      const { mine, others, returned, isFinished, open, refusal } = sort(await this.#exchange(tick, look), owner);
      if (isFinished) return { status: 'finished' };
      if (mine.length >= this.#majority) return { status: 'claimed', ttlMs };
      if (others.length > 0) return { status: 'taken', ttlMs, isBegun: others.some(isBegun) };
      if (takeOver !== 'nothing') {
        return returned.length > 0 ? { status: 'taken', ttlMs, isBegun: false } : { status: 'finished' };
      }
      if (refusal && mine.length + returned.length + open < this.#majority) return refusal;
      // The instance with the lock may be about to claim this tick.
      if (looks === MAX_LOOKS) {
        if (claim.overlap === 'skip') return this.#dropTick(tick, claim, ttlMs);
        return this.#claimAhead(tick, claim, ttlMs, attemptOf(returned));
      }
      await this.#pause(looks);
    }
  }

  async end({ resource, id: owner }: LockOwner, { claim }: { readonly claim?: ClaimEnd }): Promise<boolean> {
    if (!claim) return true;
    const { to: ending, claimTtlMs } = claim;
    const tick = { resource, tick: claim.tick };
    const texts = await this.#exchange(tick, { owner });
    await this.#each(tick, (index) => {
      const text = texts[index];
      if (!text || !isClaimOf(text, owner)) return { owner };
      return {
        owner,
        to: ending === 'finished' ? FINISHED : claimText(RETURNED, readClaim(text).attempt),
        from: text,
        claimTtlMs,
      };
    });
    return true;
  }

  /** Decides under the job's lock: no other instance does at the same time. */
  async #decideAlone(tick: Tick, claim: TickClaim, fencingToken: number): Promise<TickReply> {
    const { owner, claimTtlMs, takeOver, maxReruns = Infinity, due } = claim;
    try {
      const isNew = takeOver === 'nothing';
      const look = isNew ? newLook(claim) : { owner: owner.id, due };
      const seen = sort(await this.#exchange(tick, look), owner);
      const { mine, others, returned } = seen;
      if (seen.isFinished) return { status: 'finished' };
      if (!isNew && mine.length + others.length + returned.length === 0) return { status: 'finished' };
      const begun = others.some(isBegun);
      if (others.length > 0 && (isNew || (begun && takeOver === 'unbegun'))) {
        return { status: 'taken', ttlMs: 0, isBegun: begun };
      }
      if (isNew && seen.refusal && mine.length + returned.length + seen.open < this.#majority) return seen.refusal;
      const attempt = Math.max(attemptOf([...mine, ...returned]), begun ? attemptOf(others) + 1 : 1);
      const isGranted = !begun || attempt <= maxReruns + 1;
      const to = isGranted ? claimText(owner.id, attempt) : FINISHED;
      const written = sort(
        await this.#exchange(tick, { owner: owner.id, to, force: true, claimTtlMs, due, isJudged: isNew }),
        owner,
      );
      if (written.mine.length >= this.#majority) return { status: 'granted', fencingToken, attempt };
      if (written.isFinished) return isGranted ? { status: 'finished' } : { status: 'crashed', attempts: attempt - 1 };
      throw new LockStoreError('unknown', 'the claim of the tick was not written to a majority');
    } catch (error) {
      this.store.abandon(owner);
      throw error;
    }
  }

  /** An earlier run holds the lock: marks the tick as finished, so that no instance runs it. */
  async #dropTick(tick: Tick, { owner, claimTtlMs, due }: TickClaim, ttlMs: number): Promise<TickReply> {
    const written = await this.#exchange(tick, { owner: owner.id, to: FINISHED, claimTtlMs, due, isJudged: true });
    const isDropped = written.filter((text) => text === FINISHED).length >= this.#majority;
    if (isDropped) return { status: 'overlap' };
    const { others, refusal } = sort(written, owner);
    return others.length === 0 && refusal ? refusal : { status: 'taken', ttlMs, isBegun: others.some(isBegun) };
  }

  /** An earlier run holds the lock: tries to claim the tick for the time after that run. */
  async #claimAhead(
    tick: Tick,
    { owner, claimTtlMs, due }: TickClaim,
    ttlMs: number,
    attempt: number,
  ): Promise<TickReply> {
    for (let splits = 1; splits <= MAX_SPLITS; splits++) {
      // Each text is unique: the command that drops a claim may come late, and must not drop the next one.
      const own = `${owner.id} ${this.random.id()}`;
      const text = attempt > 1 ? claimText(own, attempt) : own;
      const texts = await this.#exchange(tick, { owner: owner.id, to: text, claimTtlMs, due, isJudged: true });
      const { mine, others, isFinished, refusal } = sort(texts, owner);
      if (mine.length >= this.#majority) return { status: 'claimed', ttlMs };
      await this.#exchange(tick, { owner: owner.id, drop: text }).catch(() => {});
      if (isFinished) return { status: 'finished' };
      if (others.some((other) => others.filter((each) => each === other).length >= this.#majority)) {
        return { status: 'taken', ttlMs, isBegun: others.some(isBegun) };
      }
      if (others.length === 0 && refusal) return refusal;
      await this.#pause(Math.min(splits, MAX_LOOKS));
    }
    throw new LockStoreError(
      'unknown',
      'other instances claim the tick at the same time, and none of them has a majority',
    );
  }

  #exchange(tick: Tick, change: ClaimChange): Promise<ClaimTexts> {
    return this.#each(tick, () => change);
  }

  #each(tick: Tick, changeAt: (index: number) => ClaimChange): Promise<ClaimTexts> {
    return askAll(this.store.quorum, (_, index) => this.claims[index]!.exchange(tick, changeAt(index)));
  }

  async #pause(times: number): Promise<void> {
    await pause(this.clock, backoff(PAUSE_MS, times) * (0.5 + this.random.fraction()));
  }
}

/** A look for a tick that may not be claimed yet. Without a time, the same text may come again. */
function newLook({ owner, claimTtlMs, due }: TickClaim): ClaimChange {
  return { owner: owner.id, due, isJudged: true, ...(!due && { mostMs: claimTtlMs }) };
}

function sort(texts: ClaimTexts, { id: owner }: Pick<LockOwner, 'id'>): Claims {
  const claims = { mine: [] as string[], others: [] as string[], returned: [] as string[] };
  let isFinished = false;
  let open = 0;
  let refusal: DueRefusal | undefined;
  for (const text of texts) {
    // A node that has not answered does not count.
    if (text === undefined) continue;
    if (text === null) {
      open++;
      continue;
    }
    const [, status, lateMs] = /^(late|early) (-?\d+)$/.exec(text) ?? [];
    if (text === FINISHED) isFinished = true;
    else if (status) refusal = { status: status as DueRefusal['status'], lateMs: Number(lateMs) };
    else if (isClaimOf(text, RETURNED)) claims.returned.push(text);
    else claims[isClaimOf(text, owner) ? 'mine' : 'others'].push(text);
  }
  return { ...claims, isFinished, open, refusal };
}

function isBegun(text: string): boolean {
  return readClaim(text).isBegun;
}

function attemptOf(texts: readonly string[]): number {
  return Math.max(1, ...texts.map((text) => readClaim(text).attempt));
}
