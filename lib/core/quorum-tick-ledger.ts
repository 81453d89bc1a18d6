import type { Clock } from './clock.js';
import { LockStoreError, type Ownership } from './lock-store.js';
import { pause } from './pause.js';
import type { QuorumLockStore } from './quorum-lock-store.js';
import { askAll } from './quorum-operators.js';
import { majorityOf } from './quorum-verdict.js';
import type { Random } from './random.js';
import { type ClaimChange, FINISHED, type TickClaims } from './tick-claims.js';
import type { Tick, TickClaim, TickLedger, TickReply } from './tick-ledger.js';

/** How often a claim looks again for what others are just about to write, and the first of the pauses in between. */
const MOST_LOOKS = 4;
const FIRST_PAUSE_MS = 10;
/** How often it tries again where the claims were split. */
const MOST_SPLITS = 10;

/** What stands at the nodes; nothing for those that do not answer. */
type Standing = readonly (string | null | undefined)[];

/**
 * Claims of ticks on a majority of nodes. Whoever has the job's lock decides what becomes of a tick, alone; and where the lock is busy, the
 * majority that has written first.
 */
export class QuorumTickLedger implements TickLedger {
  readonly #majority: number;

  /** @param claims those of the store's nodes, in their order */
  constructor(
    private readonly store: QuorumLockStore,
    private readonly claims: readonly TickClaims[],
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    this.#majority = majorityOf(claims.length);
  }

  async claim(tick: Tick, claim: TickClaim): Promise<TickReply> {
    const { ownership, leaseMs, keepMs, rescue } = claim;
    for (let looks = 1; ; looks++) {
      const lock = await this.store.acquire(ownership, leaseMs);
      if (lock.status === 'granted') {
        const reply = await this.#decideAlone(tick, claim, lock.fencingToken);
        if (reply.status !== 'granted') this.store.abandon(ownership);
        return reply;
      }
      const { ttlMs } = lock;
      // Whoever watches keeps the claim in memory, however long the run takes.
      const standing = await this.#exchange(tick, rescue ? { keepMs } : {});
      if (standing.includes(FINISHED)) return { status: 'finished' };
      if (this.#count(standing, isOf(ownership)) >= this.#majority) return { status: 'claimed', ttlMs };
      if (standing.some((text) => text && !isOf(ownership)(text))) return { status: 'taken', ttlMs };
      if (rescue) return { status: 'finished' };
      // Who has the lock may be about to claim this very tick.
      if (looks === MOST_LOOKS)
        return claim.overlap === 'skip' ? this.#drop(tick, claim, ttlMs) : this.#stake(tick, claim, ttlMs);
      await this.#pause(looks);
    }
  }

  async finish(tick: Tick, { owner }: Ownership, keepMs: number): Promise<void> {
    const standing = await this.#exchange(tick, {});
    await this.#each(tick, (index) => {
      const text = standing[index];
      return text && isOf({ owner })(text) ? { to: FINISHED, from: text, keepMs } : {};
    });
  }

  /** Under the job's lock: nobody else decides. */
  async #decideAlone(tick: Tick, { ownership, keepMs, rescue }: TickClaim, fencingToken: number): Promise<TickReply> {
    try {
      const standing = await this.#exchange(tick, {});
      const isMine = isOf(ownership);
      if (standing.includes(FINISHED)) return { status: 'finished' };
      const hasClaim = standing.some((text) => text);
      if (rescue && !hasClaim) return { status: 'finished' };
      if (!rescue && standing.some((text) => text && !isMine(text))) return { status: 'taken', ttlMs: 0 };
      const written = await this.#exchange(tick, { to: ownership.owner, force: true, keepMs });
      if (this.#count(written, isMine) >= this.#majority) return { status: 'granted', fencingToken };
      if (written.includes(FINISHED)) return { status: 'finished' };
      throw new LockStoreError('unknown', 'the claim of the tick was not written to a majority');
    } catch (error) {
      this.store.abandon(ownership);
      throw error;
    }
  }

  /** An earlier run holds the lock: nobody runs the tick. */
  async #drop(tick: Tick, { keepMs }: TickClaim, ttlMs: number): Promise<TickReply> {
    const written = await this.#exchange(tick, { to: FINISHED, keepMs });
    const isDropped = this.#count(written, (text) => text === FINISHED) >= this.#majority;
    return isDropped ? { status: 'overlap' } : { status: 'taken', ttlMs };
  }

  /** An earlier run holds the lock: one of those who want the tick has it when that is over. */
  async #stake(tick: Tick, { ownership, keepMs }: TickClaim, ttlMs: number): Promise<TickReply> {
    for (let splits = 1; splits <= MOST_SPLITS; splits++) {
      // What is given up is never written again: the command that gives it up may come late.
      const text = `${ownership.owner} ${this.random.id()}`;
      const standing = await this.#exchange(tick, { to: text, keepMs });
      if (this.#count(standing, isOf(ownership)) >= this.#majority) return { status: 'claimed', ttlMs };
      await this.#exchange(tick, { drop: text }).catch(() => {});
      const others = standing.filter((other) => other && other !== text);
      if (others.includes(FINISHED)) return { status: 'finished' };
      if (others.some((other) => this.#count(standing, (each) => each === other) >= this.#majority)) {
        return { status: 'taken', ttlMs };
      }
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

  #count(standing: Standing, isMeant: (text: string) => boolean): number {
    return standing.filter((text) => text && isMeant(text)).length;
  }

  async #pause(times: number): Promise<void> {
    await pause(this.clock, FIRST_PAUSE_MS * 2 ** times * (0.5 + this.random.fraction()));
  }
}

/** Whether a claim is of this owner. */
function isOf({ owner }: Pick<Ownership, 'owner'>): (text: string) => boolean {
  return (text) => text === owner || text.startsWith(`${owner} `);
}
