import type { Clock } from '../util/clock.js';
import type { Origin } from '../util/call-site.js';
import type { Due } from '../util/alarms.js';
import type { LeaseLossReason } from '../api/lease-errors.js';
import {
  isSharedMode,
  isSameRequest,
  type LockMode,
  type PermitRequest,
  type ResolvedLockOptions,
} from '../api/lock-options.js';
import { asStoreError, type LockStoreError } from '../store/store-error.js';
import { fencingTickOf, TOKENS_PER_FENCING_TICK } from '../store/fencing-token.js';
import type { LockOwner, Retention } from '../store/lock-store.js';
import type { Traces } from '../tracing/followers.js';

interface Renewal {
  readonly sentAt: number;
  readonly leaseMs: number;
  /** Until when the lock can be trusted if Redis executes no other renewal after this one. */
  readonly validUntil: number;
  /** `true` if it can shorten the lease and may still be executed after later ones. */
  mayCut: boolean;
  /** `true` if a later one was confirmed before it, so the order of execution is unknown. */
  isOvertaken: boolean;
}

/** Renewals that have failed since the last one that was confirmed. */
interface RenewalTrouble {
  readonly since: number;
  readonly failures: number;
  readonly cause: LockStoreError;
}

/** The local holder of a store lease: a reader beside others, or the only holder. */
export interface LocalHolder extends Due {
  readonly storeLease: StoreLease;
  readonly options: Pick<ResolvedLockOptions, 'mode' | 'group'>;
  readonly fencingToken: number;
  /** As it is stored, if it has one. */
  readonly label?: string | undefined;
  readonly followed?: Traces | undefined;
  /** The origin, recorded only for some. */
  readonly origin?: Origin | undefined;
  /** The same as text, for those that have lived for a while. */
  readonly callSite?: string | undefined;
  /** Nothing in this process refers to it any more. */
  readonly isLeaked?: true;
  readonly renewable: boolean;
  /** The monotonic time after which another process may hold the lock. */
  readonly deadline: number;
  /** The time at which observers are warned of a long hold, on the monotonic clock; `Infinity` for never. */
  readonly warnAt: number;
  warned(): void;
  readonly acquiredAt: number;
  /** Checks the deadline, and ends the hold as lost once it has passed. @returns whether it is held */
  checkHeld(): boolean;
  /** Returns the length of a renewal that is sent now. */
  renewalMs(leaseMs?: number): number;
  lose(reason: LeaseLossReason): void;
}

/** Another command that releases a store lease and stores more than that. Such a lease has no minimum. */
export interface StoreRelease {
  /** @returns whether it was still held */
  release(lazily?: boolean): Promise<boolean>;
}

const NONE: readonly LocalHolder[] = [];

/** A fencing tick has a number for each of them. */
const MAX_HAND_OVERS = TOKENS_PER_FENCING_TICK - 1;
/**
 * The time for which a store lease may be passed on in its process. A whole row of short work takes 0.6 ms, and longer
 * work gains little from a saved round trip, while other processes would wait longer.
 */
const HAND_OVERS_MS = 10;

/** The options that decide whether one lease may follow another in the same store lease. */
type HandOverOptions = Pick<
  ResolvedLockOptions,
  'mode' | 'permits' | 'leaseMs' | 'watchdog' | 'maxHoldMs' | 'minHoldMs' | 'strictOrder'
>;

/**
 * The lease of one lock as the store has it, and the deadline until which this process can trust it. Leases of this
 * process can follow one another on it, or read side by side, without asking the store.
 */
export class StoreLease {
  /** Nearly always one, so that one needs no list. */
  #holders: LocalHolder | readonly LocalHolder[] = NONE;
  /** Only set once it was downgraded. */
  declare private modeNow?: LockMode;
  /** Only set once the store has confirmed that. */
  declare isDowngraded?: true;
  /** Only set if some of its permits were released. */
  declare private permitsNow?: PermitRequest | undefined;
  /** The number of permits left after a command without an answer: it may have been executed, or may still be. */
  declare permitsLeft?: number | undefined;
  /** Only set if callers have entered it that ask for a longer minimum than its first one. */
  declare private raisedMinHoldMs?: number;
  #leaseMs: number;
  /**
   * No renewal is trusted for longer, because one that makes the lease this short may still be executed after it. Not
   * set if there is none.
   */
  declare private trustedMs?: number;
  /** For the watchdog. */
  nextRenewalAt: number;
  /** The depth that the store shows, as far as this process knows: of a reentrant holder or a writer. */
  toldDepth: number | undefined = 1;
  /**
   * `true` if the store may have forgotten it. Then the next lease needs the store, because another process may have a
   * larger token already.
   */
  isInDoubt = false;
  /** Set by the watchdog, while renewals fail. */
  declare trouble?: RenewalTrouble | undefined;
  /** The label that the store shows, as far as this process knows. Only set if a holder has had one. */
  declare label?: string;
  /** The release command, if it is not the plain one. */
  declare readonly releasedBy?: StoreRelease;
  #mintedHere = 0;
  #confirmedUntil: number;
  /** Renewals that may be executed or have been, without an answer yet, in the order they were sent. */
  #unanswered: readonly Renewal[] | undefined;

  /** @param token the token of its first lease */
  constructor(
    readonly owner: LockOwner,
    private readonly token: number,
    sentAt: number,
    private readonly options: HandOverOptions,
    readonly clock: Clock,
    readonly beganAt = clock.now(),
    releasedBy?: StoreRelease,
  ) {
    this.#leaseMs = options.leaseMs;
    this.#confirmedUntil = validUntil(sentAt, options.leaseMs);
    this.nextRenewalAt = sentAt + options.leaseMs / 3;
    if (owner.label !== undefined) this.label = owner.label;
    if (releasedBy) this.releasedBy = releasedBy;
  }

  get leaseMs(): number {
    return this.trustedMs === undefined ? this.#leaseMs : Math.min(this.#leaseMs, this.trustedMs);
  }

  set leaseMs(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  get mode(): LockMode {
    return this.modeNow ?? this.options.mode;
  }

  set mode(mode: LockMode) {
    this.modeNow = mode;
  }

  /** `true` if the store is known to have it in mode `read`. */
  get isReadLock(): boolean {
    return this.isDowngraded === true || this.options.mode === 'read';
  }

  get permits(): PermitRequest | undefined {
    return this.permitsNow ?? this.options.permits;
  }

  set permits(permits: PermitRequest | undefined) {
    this.permitsNow = permits;
  }

  /** The minimum time for which the resource stays taken, from the grant; 0 for none. */
  get minHoldMs(): number {
    return this.raisedMinHoldMs ?? this.options.minHoldMs;
  }

  /** No pending renewal may end it sooner. */
  get deadline(): number {
    if (this.#unanswered === undefined) return this.#confirmedUntil;
    return this.#unanswered.reduce((soonest, { validUntil }) => Math.min(soonest, validUntil), this.#confirmedUntil);
  }

  /** The token of its latest lease: the first token, and one more for each lease that followed. */
  get fencingToken(): number {
    return this.tokenAfter(this.#mintedHere);
  }

  /** The number of leases that followed its first one. */
  get handOvers(): number {
    return this.#mintedHere;
  }

  tokenAfter(handOvers: number): number {
    return this.token + handOvers;
  }

  get holders(): readonly LocalHolder[] {
    return isList(this.#holders) ? this.#holders : [this.#holders];
  }

  get hasSeveralHolders(): boolean {
    return isList(this.#holders) && this.#holders.length > 1;
  }

  get isShared(): boolean {
    return isSharedMode(this.mode);
  }

  /** Returns true if a lease with these options may read beside the present readers. */
  mayShareWith(next: HandOverOptions): boolean {
    // An extension that is under way may make it shorter than the new reader asks for.
    const isSteady = !this.#unanswered?.some(({ mayCut }) => mayCut);
    return this.mode === 'read' && isSteady && this.mayHandOverTo(next);
  }

  /**
   * Returns true if a lease with these options may follow the one that ends now. Limited, because waiters of other
   * processes must get their turn, and a fencing tick has 64 tokens. And if the store has forgotten this
   * lease unnoticed, the next token would be smaller than the ones it has granted since.
   */
  mayHandOverTo(next: HandOverOptions, now = this.clock.now()): boolean {
    const { options } = this;
    return (
      !this.isInDoubt &&
      !options.strictOrder &&
      !next.strictOrder &&
      this.#mintedHere < MAX_HAND_OVERS &&
      now - this.beganAt < HAND_OVERS_MS &&
      now < this.deadline &&
      this.mode === next.mode &&
      this.permitsLeft === undefined &&
      isSameRequest(this.permits, next.permits) &&
      options.watchdog &&
      next.watchdog &&
      // They differ if the lease was extended, or was cut because of a maxHoldMs.
      this.leaseMs === next.leaseMs &&
      options.maxHoldMs === Infinity &&
      next.maxHoldMs === Infinity &&
      // A minimum is counted from a grant of the store.
      this.minHoldMs === 0 &&
      next.minHoldMs === 0
    );
  }

  /** Called when a caller that has entered it asks for a longer minimum. */
  raiseMinHold(minHoldMs: number): void {
    if (minHoldMs > this.minHoldMs) this.raisedMinHoldMs = minHoldMs;
  }

  /** Returns the time for which the resource stays taken if it is released now; `undefined` if the release frees it. */
  retention(): Retention | undefined {
    const { minHoldMs } = this;
    if (minHoldMs === 0) return undefined;
    // The grant was earlier than this process learned of it. With the allowance for the drift of the clocks on top.
    const leftMs = Math.ceil(this.beganAt + leaseFor(minHoldMs) - this.clock.now());
    return leftMs > 0 ? { minHoldMs, leftMs } : undefined;
  }

  get isHandedOn(): boolean {
    return this.#mintedHere > 0;
  }

  /** A new lease begins on it, with a larger token. */
  mintToken(): void {
    this.#mintedHere++;
  }

  addHolder(holder: LocalHolder): void {
    const { holders } = this;
    this.#holders = holders.length === 0 ? holder : [...holders, holder];
  }

  /** @returns whether other holders are left */
  removeHolder(holder: LocalHolder): boolean {
    // Nearly always: the only holder.
    if (this.#holders === holder) this.#holders = NONE;
    else if (isList(this.#holders)) this.#holders = this.#holders.filter((other) => other !== holder);
    return this.holders.length > 0;
  }

  /**
   * Sends a command that renews the lease, and moves the deadline by its outcome. Until it is answered it may be
   * executed, and the lock may then end with it. So the lock is not trusted for longer than that, however long earlier
   * renewals last. `send` is called at once; its reply `true` confirms the renewal.
   */
  renewBy(leaseMs: number, send: () => Promise<boolean>, exactly = false, sentAt = this.clock.now()): Promise<boolean> {
    const until = validUntil(sentAt, leaseMs);
    const renewal: Renewal = { sentAt, leaseMs, validUntil: until, mayCut: exactly, isOvertaken: false };
    this.#unanswered = this.#unanswered ? [...this.#unanswered, renewal] : [renewal];
    return send().then(
      (isRenewed) => {
        if (isRenewed) this.confirm(renewal);
        return isRenewed;
      },
      (error: unknown) => {
        const cause = asStoreError(error);
        if (cause.failure === 'unknown') this.forget(renewal);
        else this.dismiss(renewal);
        throw cause;
      },
    );
  }

  get isUnconfirmed(): boolean {
    return this.#unanswered !== undefined;
  }

  /** The send time of the oldest renewal that Redis has not confirmed; not set if none is pending. */
  get unconfirmedSince(): number | undefined {
    return this.trouble?.since ?? this.#unanswered?.[0]?.sentAt;
  }

  takenOver(): void {
    for (const holder of this.holders) holder.lose('takenOver');
  }

  /** Called when it was executed. A confirmation after the deadline changes nothing: the lock is lost. */
  private confirm(renewal: Renewal): void {
    const unanswered = this.#unanswered;
    const index = unanswered?.indexOf(renewal) ?? -1;
    if (!unanswered || index === -1 || this.clock.now() >= this.deadline) return;
    // Earlier commands were executed before it, or never, or only make the lease longer. The exception is one that
    // makes it shorter and has no answer: a script that Redis did not know is sent again, so it may still be executed,
    // and with several connections or nodes answers may arrive out of order.
    const earlier = unanswered.slice(0, index).filter(({ mayCut }) => mayCut);
    for (const each of earlier) each.isOvertaken = true;
    this.setUnanswered([...earlier, ...unanswered.slice(index + 1)]);
    const until = validUntil(renewal.sentAt, Math.min(renewal.leaseMs, this.trustedMs ?? Infinity));
    this.#confirmedUntil = renewal.isOvertaken ? Math.min(this.#confirmedUntil, until) : until;
  }

  /** Called when it was not executed, and never will be. */
  private dismiss(renewal: Renewal): void {
    this.setUnanswered((this.#unanswered ?? []).filter((other) => other !== renewal));
  }

  /** Called when it has no answer. It may still be executed late, and then shorten a lease that was renewed since. */
  private forget(renewal: Renewal): void {
    if (renewal.mayCut) this.trustedMs = Math.min(this.trustedMs ?? Infinity, renewal.leaseMs);
    renewal.mayCut = false;
  }

  private setUnanswered(renewals: readonly Renewal[]): void {
    this.#unanswered = renewals.length === 0 ? undefined : renewals;
  }
}

function isList(holders: LocalHolder | readonly LocalHolder[]): holders is readonly LocalHolder[] {
  return Array.isArray(holders);
}

/**
 * The store leases of a queue: nearly always one, which needs no object of its own, and several if the resource can be
 * shared. Of permits it may be thousands, so no operation scans them all.
 */
export type OneOrSeveral = StoreLease | Set<StoreLease> | undefined;

export function withLease(leases: OneOrSeveral, added: StoreLease): OneOrSeveral {
  if (leases === undefined) return added;
  return (leases instanceof Set ? leases : new Set([leases])).add(added);
}

export function withoutLease(leases: OneOrSeveral, ended: StoreLease): OneOrSeveral {
  if (!(leases instanceof Set)) return leases === ended ? undefined : leases;
  leases.delete(ended);
  return leases.size === 1 ? firstOf(leases) : leases;
}

export function firstOf(leases: OneOrSeveral): StoreLease | undefined {
  return leases instanceof Set ? leases.values().next().value : leases;
}

export function hasLease(leases: OneOrSeveral, storeLease: StoreLease): boolean {
  return leases instanceof Set ? leases.has(storeLease) : leases === storeLease;
}

export function allOf(leases: OneOrSeveral): Iterable<StoreLease> {
  return leases instanceof Set ? leases : leases === undefined ? [] : [leases];
}

/** Returns the holder of the lease with this token, or of one that counts up from it. */
export function holderOf(leases: OneOrSeveral, fencingToken: number): LocalHolder | undefined {
  const tick = fencingTickOf(fencingToken);
  const holders = [...allOf(leases)].flatMap((storeLease) => storeLease.holders);
  const meant = holders.filter((holder) => fencingTickOf(holder.fencingToken) === tick);
  return meant.find((holder) => holder.fencingToken === fencingToken) ?? meant[0];
}

export function isHeldBy(leases: OneOrSeveral, owner: LockOwner): boolean {
  return find(leases, (storeLease) => storeLease.owner === owner) !== undefined;
}

/** Finds one that another reader may share without asking the store. */
export function sharableWith(leases: OneOrSeveral, options: ResolvedLockOptions): StoreLease | undefined {
  return options.mode === 'read' ? find(leases, (storeLease) => storeLease.mayShareWith(options)) : undefined;
}

/** Returns true if nothing can be granted with these options before this process releases. */
export function excludes(leases: OneOrSeveral, { mode }: ResolvedLockOptions): boolean {
  // A call that takes a lock for a semaphore asks the store, which refuses it at once.
  return mode !== 'semaphore' && find(leases, ({ isShared }) => !isShared) !== undefined;
}

/** Called at each hand-over, so it allocates no array or iterator for a single lease. */
function find(leases: OneOrSeveral, isMeant: (storeLease: StoreLease) => boolean): StoreLease | undefined {
  if (!(leases instanceof Set)) return leases !== undefined && isMeant(leases) ? leases : undefined;
  for (const storeLease of leases) if (isMeant(storeLease)) return storeLease;
  return undefined;
}

/**
 * Until when a lease may be trusted: counted from the moment its command was *sent*, so that the time on the wire is
 * never given away, less an allowance for the drift between this process's clock and the clock of Redis (1 % + 2 ms).
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/ (validity time and clock drift)
 */
export function validUntil(sentAt: number, leaseMs: number): number {
  return sentAt + leaseMs - (leaseMs * 0.01 + 2);
}

/** Returns the lease to ask for if it must be trusted for `validMs`. */
export function leaseFor(validMs: number): number {
  return Math.ceil((validMs + 2) / 0.99);
}
