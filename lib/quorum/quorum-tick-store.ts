import type { Clock } from '../core/util/clock.js';
import { LockStoreError, type LockOwner } from '../core/store/lock-store.js';
import { pause } from '../core/util/pause.js';
import type { QuorumLockStore } from './quorum-lock-store.js';
import { askAll } from './operators.js';
import { majorityOf } from './majority.js';
import type { Random } from '../core/util/random.js';
import {
  type ClaimChange,
  claimText,
  FINISHED,
  isClaimOf,
  readClaim,
  RERUNS,
  RETURNED,
  returnedFrom,
  RUNS,
  type TickNode,
} from '../core/store/tick-claims.js';
import type { DueRefusal } from '../core/store/tick-due.js';
import type { Tick, TickClaim, TickStore, TickReply } from '../core/store/tick-store.js';

/** How often a claim looks again for what others are just about to write, and the first of the pauses in between. */
const MOST_LOOKS = 4;
const FIRST_PAUSE_MS = 10;
/** How often it tries again where the claims were split. */
const MOST_SPLITS = 10;

/** What stands at the nodes; nothing for those that do not answer. */
type Standing = readonly (string | null | undefined)[];

/** What stands at each node for a tick, taken apart. */
interface Sight {
  /** Claims of this id, of other owners, and those that were given back. */
  readonly mine: readonly string[];
  readonly others: readonly string[];
  readonly returned: readonly string[];
  readonly isFinished: boolean;
  /** At how many nodes there is no claim, and the tick may start by the node's clock. */
  readonly open: number;
  /** Why one of the other nodes refuses it. */
  readonly refusal: DueRefusal | undefined;
}

/**
 * Claims of ticks on a majority of nodes. Whoever has the job's lock decides what becomes of a tick, alone; and where the lock is busy, the
 * majority that has written first.
 *
 * Whether a tick is late or early each node judges by its own clock, and a majority decides. Any two majorities have a node in
 * common, and that node accepts a tick only once (see {@link windowMs}): so no tick starts twice. A tick that a majority refuses is
 * not written anywhere.
 */
export class QuorumTickStore implements TickStore {
  readonly #majority: number;

  /** @param claims those of the store's nodes, in their order */
  constructor(
    private readonly store: QuorumLockStore,
    private readonly claims: readonly TickNode[],
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    this.#majority = majorityOf(claims.length);
  }

  async claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
    const { ownership, leaseMs, keepMs, takeOver, due } = claim;
    for (let looks = 1; ; looks++) {
      const lock = await this.store.acquire(ownership, leaseMs);
      if (lock.status === 'granted') {
        const reply = await this.#decideAlone(tick, claim, lock.fencingToken);
        if (reply.status !== 'granted') this.store.abandon(ownership);
        return reply;
      }
      const { ttlMs } = lock;
      // Whoever watches keeps the claim in memory, however long the run takes.
      const { id: owner } = ownership;
      const look = takeOver === 'nothing' ? { owner, due, isJudged: true } : { owner, keepMs };
      const { mine, others, returned, isFinished, open, refusal } = see(await this.#exchange(tick, look), ownership);
      if (isFinished) return { status: 'finished' };
      if (mine.length >= this.#majority) return { status: 'claimed', ttlMs };
      if (others.length > 0) return { status: 'taken', ttlMs, isBegun: others.some(isBegun) };
      if (takeOver !== 'nothing') {
        return returned.length > 0 ? { status: 'taken', ttlMs, isBegun: false } : { status: 'finished' };
      }
      if (refusal && mine.length + returned.length + open < this.#majority) return refusal;
      // Who has the lock may be about to claim this very tick.
      if (looks === MOST_LOOKS) {
        if (claim.overlap === 'skip') return this.#drop(tick, claim, ttlMs);
        return this.#stake(tick, claim, ttlMs, returned.some(isRerun));
      }
      await this.#pause(looks);
    }
  }

  finish(tick: Tick, ownership: LockOwner, keepMs: number): Promise<void> {
    return this.#end(tick, ownership, keepMs, () => FINISHED);
  }

  giveBack(tick: Tick, ownership: LockOwner, keepMs: number): Promise<void> {
    return this.#end(tick, ownership, keepMs, returnedFrom);
  }

  async #end(
    tick: Tick,
    { id: owner }: LockOwner,
    keepMs: number,
    stateAfter: (text: string) => string,
  ): Promise<void> {
    const standing = await this.#exchange(tick, { owner });
    await this.#each(tick, (index) => {
      const text = standing[index];
      return text && isClaimOf(text, owner) ? { owner, to: stateAfter(text), from: text, keepMs } : { owner };
    });
  }

  /** Under the job's lock: no other instance decides. */
  async #decideAlone(tick: Tick, claim: TickClaim, fencingToken: number): Promise<TickReply> {
    const { ownership, keepMs, takeOver, due } = claim;
    const { id: owner } = ownership;
    try {
      const isNew = takeOver === 'nothing';
      const seen = see(await this.#exchange(tick, { owner, due, isJudged: isNew }), ownership);
      const { mine, others, returned } = seen;
      if (seen.isFinished) return { status: 'finished' };
      if (!isNew && mine.length + others.length + returned.length === 0) return { status: 'finished' };
      const begun = others.some(isBegun);
      if (others.length > 0 && (isNew || (begun && takeOver === 'unbegun'))) {
        return { status: 'taken', ttlMs: 0, isBegun: begun };
      }
      if (isNew && seen.refusal && mine.length + returned.length + seen.open < this.#majority) return seen.refusal;
      const rerun = begun || mine.some(isRerun) || returned.some(isRerun);
      const to = claimText(owner, rerun ? RERUNS : RUNS);
      const written = see(
        await this.#exchange(tick, { owner, to, force: true, keepMs, due, isJudged: isNew }),
        ownership,
      );
      if (written.mine.length >= this.#majority) return { status: 'granted', fencingToken, rerun };
      if (written.isFinished) return { status: 'finished' };
      throw new LockStoreError('unknown', 'the claim of the tick was not written to a majority');
    } catch (error) {
      this.store.abandon(ownership);
      throw error;
    }
  }

  /** An earlier run holds the lock: no instance runs the tick. */
  async #drop(tick: Tick, { ownership, keepMs, due }: TickClaim, ttlMs: number): Promise<TickReply> {
    const written = await this.#exchange(tick, { owner: ownership.id, to: FINISHED, keepMs, due, isJudged: true });
    const isDropped = written.filter((text) => text === FINISHED).length >= this.#majority;
    if (isDropped) return { status: 'overlap' };
    const { others, refusal } = see(written, ownership);
    return others.length === 0 && refusal ? refusal : { status: 'taken', ttlMs, isBegun: others.some(isBegun) };
  }

  /** An earlier run holds the lock: one of those who want the tick has it when that is over. */
  async #stake(tick: Tick, { ownership, keepMs, due }: TickClaim, ttlMs: number, rerun: boolean): Promise<TickReply> {
    const { id: owner } = ownership;
    for (let splits = 1; splits <= MOST_SPLITS; splits++) {
      // What is given up is never written again: the command that gives it up may come late.
      const text = `${owner} ${this.random.id()}${rerun ? ` ${RERUNS}` : ''}`;
      const standing = await this.#exchange(tick, { owner, to: text, keepMs, due, isJudged: true });
      const { mine, others, isFinished, refusal } = see(standing, ownership);
      if (mine.length >= this.#majority) return { status: 'claimed', ttlMs };
      await this.#exchange(tick, { owner, drop: text }).catch(() => {});
      if (isFinished) return { status: 'finished' };
      if (others.some((other) => others.filter((each) => each === other).length >= this.#majority)) {
        return { status: 'taken', ttlMs, isBegun: others.some(isBegun) };
      }
      if (others.length === 0 && refusal) return refusal;
      await this.#pause(Math.min(splits, MOST_LOOKS));
    }
    throw new LockStoreError('unknown', 'others claim the tick at the same time, and none of them at a majority');
  }

  #exchange(tick: Tick, change: ClaimChange): Promise<Standing> {
    return this.#each(tick, () => change);
  }

  #each(tick: Tick, changeAt: (index: number) => ClaimChange): Promise<Standing> {
    return askAll(this.store.nodes, this.store.timing, (_, index) =>
      this.claims[index]!.exchange(tick, changeAt(index)),
    );
  }

  async #pause(times: number): Promise<void> {
    await pause(this.clock, FIRST_PAUSE_MS * 2 ** times * (0.5 + this.random.fraction()));
  }
}

function see(standing: Standing, { id: owner }: Pick<LockOwner, 'id'>): Sight {
  const sight = { mine: [] as string[], others: [] as string[], returned: [] as string[] };
  let isFinished = false;
  let open = 0;
  let refusal: DueRefusal | undefined;
  for (const text of standing) {
    // A node that does not answer has no vote.
    if (text === undefined) continue;
    if (text === null) {
      open++;
      continue;
    }
    const [, status, lateMs] = /^(late|early) (-?\d+)$/.exec(text) ?? [];
    if (text === FINISHED) isFinished = true;
    else if (status) refusal = { status: status as DueRefusal['status'], lateMs: Number(lateMs) };
    else if (isClaimOf(text, RETURNED)) sight.returned.push(text);
    else sight[isClaimOf(text, owner) ? 'mine' : 'others'].push(text);
  }
  return { ...sight, isFinished, open, refusal };
}

function isBegun(text: string): boolean {
  return readClaim(text).state !== '';
}

function isRerun(text: string): boolean {
  return readClaim(text).state === RERUNS;
}
