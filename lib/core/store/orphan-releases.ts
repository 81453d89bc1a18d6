import { setMaxListeners } from 'node:events';
import type { Alarms } from '../util/alarms.js';
import { askUntil } from './ask.js';
import { backoff } from '../util/backoff.js';
import { inRootContext } from '../util/async-contexts.js';
import type { Clock } from '../util/clock.js';
import type { LockStore, LockOwner, PushedGrant } from './lock-store.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';

/** First and longest pause between two tries. */
const PAUSE_MS = { first: 20, longest: 500 };

/** A command that goes before the release, and is sent again with it. */
type Before = () => Promise<unknown>;

/**
 * Releases whose outcome is not known yet, and the ends of acquisitions that may have succeeded unnoticed. Each is sent
 * again until it is answered or until the lock has expired by itself.
 */
export class OrphanReleases {
  /** By id. */
  readonly #pending = new Map<string, Promise<void>>();
  /** By what was withdrawn: what is sent before its release. */
  readonly #withdrawn = new WeakMap<LockOwner, Before | undefined>();
  readonly #late: LateGrants;
  readonly #stop = new AbortController();

  constructor(
    private readonly store: Pick<LockStore, 'release'>,
    private readonly clock: Clock,
    private readonly alarms: Alarms,
  ) {
    setMaxListeners(0, this.#stop.signal);
    this.#late = new LateGrants(clock);
  }

  get size(): number {
    return this.#pending.size;
  }

  /** How many resources may still be granted to a waiter that has gone. */
  get departed(): number {
    return this.#late.size;
  }

  start(owner: LockOwner, limits: Limits, before = this.#withdrawn.get(owner)): void {
    this.#withdrawn.set(owner, before);
    // It may go on for as long as the lease lasts: the caller's data is not kept for so long.
    inRootContext(() => this.#begin(owner, limits, before));
  }

  #begin(owner: LockOwner, limits: Limits, before: Before | undefined): void {
    const earlier = this.#pending.get(owner.id);
    const repeat = () => this.#repeat(owner, limits, before);
    const work = (earlier ? earlier.then(repeat) : repeat()).finally(() => {
      if (this.#pending.get(owner.id) === work) this.#pending.delete(owner.id);
    });
    this.#pending.set(owner.id, work);
  }

  /** The id waits no more, and so many of its questions may still be executed. What they are granted is given back. */
  expectLate(owner: LockOwner, limits: Limits, unanswered: number): void {
    this.#late.expect(owner, limits, unanswered);
  }

  /** One question is answered of an owner that waits no more. */
  answered(owner: LockOwner): void {
    this.#late.answered(owner);
  }

  /**
   * A message reports a grant for which no call waits here. It changes nothing unless that is one of
   * this client's: a process that may use the channels can repeat in one inbox what was said in another.
   */
  hear(grant: PushedGrant, isHeld: (owner: LockOwner) => boolean): void {
    const departed = this.#late.claim(grant);
    if (departed && !isHeld(departed.owner)) this.start(departed.owner, departed.limits);
  }

  /** Releases it once more. Nothing more is sent where a release is under way: it comes after that. */
  again(owner: LockOwner, limits: Limits): void {
    if (!this.#pending.has(owner.id)) this.start(owner, limits);
  }

  /**
   * For a command that no caller waits for any more. It may be executed after the release that was to withdraw it, or
   * to end the lease: a script that Redis did not know is sent once more. What it grants then is given back as well.
   *
   * @param isHeld whether the lock is wanted after all
   */
  refuseLateGrant(
    command: Promise<{ readonly status: string }>,
    owner: LockOwner,
    limits: Limits,
    isHeld = () => !this.#withdrawn.has(owner),
  ): void {
    command.then(
      ({ status }) => {
        if (status === 'granted' && !isHeld()) this.start(owner, limits);
      },
      () => {},
    );
  }

  /** Waits for all of them, but no longer than `patienceMs`; the rest is left to expire. */
  async settle(patienceMs: number): Promise<void> {
    const timer = this.clock.setTimer(() => this.#stop.abort(), patienceMs);
    await Promise.all(this.#pending.values());
    timer.cancel();
    this.#stop.abort();
  }

  async #repeat(owner: LockOwner, { leaseMs, attemptTimeoutMs }: Limits, before: Before | undefined): Promise<void> {
    const expiresAt = this.clock.now() + leaseMs;
    await askUntil(this.alarms, this.clock, {
      send: () => (before ? this.#inOrder(before, owner) : this.store.release(owner)),
      timeoutMs: attemptTimeoutMs,
      giveUpAt: expiresAt,
      pauseMs: (failures) => backoff(PAUSE_MS, failures),
      signal: this.#stop.signal,
    });
  }

  /** The release is sent whatever becomes of the command before it. */
  async #inOrder(before: Before, owner: LockOwner): Promise<boolean> {
    const [first] = await Promise.allSettled([before()]);
    const wasHeld = await this.store.release(owner);
    if (first.status === 'rejected') throw first.reason;
    return wasHeld;
  }
}

/** How long the lock may live, and how long one command may take. */
export type Limits = Pick<ResolvedLockOptions, 'leaseMs' | 'attemptTimeoutMs'>;

/** One that waits no more, though the store may still grant it what it has asked for. */
export interface Departed {
  readonly owner: LockOwner;
  readonly limits: Limits;
}

interface Entry extends Departed {
  readonly endsAt: number;
  /** How many of its questions are not answered yet. */
  unanswered: number;
  heardToken: number;
}

/**
 * More are not expected of one resource, or at all: the oldest are forgotten, and what they are granted expires by
 * itself.
 */
const MOST = { ofResource: 16, resources: 10_000 };
/** So many are looked at for each that comes: more than come, so that none is forgotten forever. */
const SWEPT_AT_ONCE = 2;

/**
 * Waiters that wait no more while something they have asked may still be executed, as where a connection broke. What
 * they are granted by then has to be given back. Other grant messages are not for this client.
 */
export class LateGrants {
  readonly #byResource = new Map<string, Entry[]>();

  constructor(private readonly clock: Clock) {}

  /** How many resources it keeps in mind. */
  get size(): number {
    return this.#byResource.size;
  }

  /** @param unanswered how many of its questions may still be executed */
  expect(owner: LockOwner, { leaseMs, attemptTimeoutMs }: Limits, unanswered: number): void {
    this.#sweep();
    const { resource } = owner;
    const entries = this.#byResource.get(resource)?.slice(1 - MOST.ofResource) ?? [];
    // One that is executed about now has its place, and then its lease, for so long.
    const endsAt = this.clock.now() + 2 * leaseMs;
    // The options of a call have a signal of the caller's, which is not to be kept for so long.
    const limits = { leaseMs, attemptTimeoutMs };
    entries.push({ owner, limits, endsAt, unanswered, heardToken: 0 });
    this.#byResource.delete(resource);
    this.#byResource.set(resource, entries);
  }

  /** One of its questions is answered. After the last one nothing is expected of it. */
  answered({ resource, id }: LockOwner): void {
    const entries = this.#byResource.get(resource);
    const entry = entries?.find(({ owner }) => owner.id === id);
    if (entry === undefined || --entry.unanswered > 0) return;
    if (entries!.length === 1) this.#byResource.delete(resource);
    else entries!.splice(entries!.indexOf(entry), 1);
  }

  /** Whom a grant is for, if it is one of these. Once for each grant, however often its message comes. */
  claim(grant: PushedGrant): Departed | undefined {
    const entry = this.#byResource.get(grant.resource)?.find(({ owner }) => grant.isFor(owner.id));
    if (entry === undefined || entry.heardToken >= grant.fencingToken) return undefined;
    entry.heardToken = grant.fencingToken;
    return entry;
  }

  #sweep(): void {
    const now = this.clock.now();
    for (let swept = 0; swept < SWEPT_AT_ONCE; swept++) {
      const [oldest] = this.#byResource;
      if (oldest === undefined) return;
      const [resource, entries] = oldest;
      const alive = entries.filter(({ endsAt }) => endsAt > now);
      this.#byResource.delete(resource);
      const isCrowded = this.#byResource.size >= MOST.resources - 1;
      if (alive.length > 0 && !isCrowded) this.#byResource.set(resource, alive);
    }
  }
}
