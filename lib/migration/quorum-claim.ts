import type { ForeignClaim, ForeignReply } from '../core/api/foreign-lock.js';
import { asStoreError, LockStoreError } from '../core/store/store-error.js';

/**
 * A claim to the same lock on several servers, which counts where a majority of them agrees. It answers as soon as the
 * outcome is certain, so a server that hangs delays nothing.
 */
export class QuorumClaim implements ForeignClaim {
  readonly #majority: number;
  /** Numbers what has begun, so that an attempt that ends late knows whether it still counts. */
  #latest = 0;
  /** Whether no attempt holds it, or may still: a vote that comes then is too late. */
  #isReleased = false;
  /** Releases that are not answered yet: until then they could be executed after a later acquire, and free its vote. */
  readonly #releasing = new Map<ForeignClaim, Promise<unknown>>();

  constructor(private readonly claims: readonly ForeignClaim[]) {
    this.#majority = Math.floor(claims.length / 2) + 1;
  }

  async tryAcquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply> {
    const attempt = ++this.#latest;
    this.#isReleased = false;
    let ttlMs = Infinity;
    let isOurs = true;
    const isHeld = await this.#vote(async (claim) => {
      await this.#releasing.get(claim);
      const reply = await claim.tryAcquire(leaseMs, signal);
      if (reply.status === 'busy') {
        ttlMs = Math.min(ttlMs, reply.ttlMs);
        isOurs &&= reply.isOurs ?? false;
      }
      // Too late: the claim was given up, and no later attempt has taken the place of this one.
      else if (this.#isReleased) this.#releaseQuietly(claim);
      return reply.status === 'held';
    }).catch((error: unknown) => {
      // Those that have not answered yet may still grant it.
      if (attempt === this.#latest) this.#isReleased = true;
      throw error;
    });
    if (isHeld) return { status: 'held' };
    // A later attempt may hold it by now, with the same owner value.
    if (attempt === this.#latest) {
      this.#isReleased = true;
      for (const claim of this.claims) this.#releaseQuietly(claim);
    }
    return { status: 'busy', ttlMs, ...(isOurs && { isOurs }) };
  }

  renew(leaseMs: number): Promise<boolean> {
    return this.#vote((claim) => claim.renew(leaseMs));
  }

  release(keepMs: number): Promise<boolean> {
    this.#isReleased = true;
    return this.#vote((claim) => claim.release(keepMs));
  }

  /** Only where those that can be reached are no majority. */
  describeTrouble(): string | undefined {
    const troubles = this.claims.map((claim) => claim.describeTrouble?.()).filter((trouble) => trouble !== undefined);
    if (this.claims.length - troubles.length >= this.#majority) return undefined;
    return `no majority of the servers can be reached: ${troubles.join('; ')}`;
  }

  #releaseQuietly(claim: ForeignClaim): void {
    const released = claim.release(0).catch(() => {}); // it ends by itself
    this.#releasing.set(claim, Promise.all([this.#releasing.get(claim), released]));
  }

  /**
   * Asks all of them. Resolves to whether a majority says yes; to `false` where a majority cannot be had because of
   * those that say no.
   *
   * @throws LockStoreError where it cannot be had because of those that fail
   */
  #vote(ask: (claim: ForeignClaim) => Promise<boolean>): Promise<boolean> {
    const { claims } = this;
    const majority = this.#majority;
    return new Promise((resolve, reject) => {
      let yes = 0;
      let no = 0;
      const failures: LockStoreError[] = [];
      const count = (): void => {
        if (yes >= majority) resolve(true);
        else if (no > claims.length - majority) resolve(false);
        else if (no + failures.length > claims.length - majority) {
          reject(summary(failures, yes > 0));
        }
      };
      for (const claim of claims) {
        ask(claim).then(
          (isYes) => {
            if (isYes) yes++;
            else no++;
            count();
          },
          (error: unknown) => {
            failures.push(asStoreError(error));
            count();
          },
        );
      }
    });
  }
}

/** Why there is no majority. What one of them has executed, or may have, counts as that. */
function summary(failures: readonly LockStoreError[], isExecuted: boolean): LockStoreError {
  const of = (kind: LockStoreError['failure']) => failures.find(({ failure }) => failure === kind);
  const why = of('unknown') ?? of('notExecuted') ?? failures[0]!;
  return new LockStoreError(
    isExecuted ? 'unknown' : why.failure,
    `no majority of the servers answered: ${why.message}`,
  );
}
