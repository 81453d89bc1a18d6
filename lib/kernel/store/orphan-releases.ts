import { setMaxListeners } from 'node:events';
import type { Alarms } from '../util/alarms.js';
import { askUntil, RefusedCommands } from './ask-until.js';
import { inRootContext } from '../util/async-contexts.js';
import { backoff, type Clock } from '../util/clock.js';
import type { LockStore, LockOwner, Retention } from './lock-store.js';
import type { PushedGrant } from './message-health.js';
import type { ResolvedLockOptions } from '../api/lock-options.js';

const PAUSE_MS = { first: 20, longest: 500 };

type Before = () => Promise<unknown>;

/** The number of commands that are sent, each after the answer to the one before. */
const commandsWith = (before: Before | undefined): number => (before ? 2 : 1);

/** The parts of a release that do more than free the resource. */
interface Retained {
  /** The time for which the resource stays taken if it is released now. */
  retention?(): Retention | undefined;
  /** Another command that releases it, if it is not the plain one. */
  readonly releasedBy?: { release(lazily?: boolean): Promise<boolean> };
}

/**
 * Releases that have failed, and releases of acquisitions that may have succeeded after the call gave up. Each is sent
 * again until it is answered, also if it is refused, or until the lock has expired.
 */
export class OrphanReleases {
  readonly #pending = new Map<string, { readonly work: Promise<void>; readonly commands: number }>();
  /** For each withdrawn owner, the command that is sent before its release. */
  readonly #withdrawn = new WeakMap<LockOwner, Before | undefined>();
  /** The owners whose releases leave the resource taken for a time, or store more. */
  readonly #retained = new WeakMap<LockOwner, Retained>();
  /** Releases late grants of calls that have given up. */
  readonly late: LateGrants;
  /** The commands that have to arrive and were refused: these releases, and others to the same store. */
  readonly refused: RefusedCommands;
  readonly #stop = new AbortController();

  constructor(
    private readonly store: Pick<LockStore, 'release' | 'retain'>,
    private readonly clock: Clock,
    private readonly alarms: Alarms,
  ) {
    setMaxListeners(0, this.#stop.signal);
    this.late = new LateGrants(clock);
    this.refused = new RefusedCommands(clock);
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Releases this owner by its lease's command from now on, and until its retention has passed. */
  retain(owner: LockOwner, retained: Retained): void {
    this.#retained.set(owner, retained);
  }

  /**
   * Releases a lease in the store, once, by its own command. Before the end of its minimum, the resource stays taken
   * until then. @returns whether it was still held
   */
  release(lease: Retained & { readonly owner: LockOwner }, lazily?: boolean): Promise<boolean> {
    this.retain(lease.owner, lease);
    return this.#release(lease.owner, lazily);
  }

  start(owner: LockOwner, limits: Limits, before = this.#withdrawn.get(owner)): void {
    this.#withdrawn.set(owner, before);
    // It may run for as long as the lease lasts, and must not keep the caller's data for that time.
    inRootContext(() => this.#begin(owner, limits, before));
  }

  #begin(owner: LockOwner, limits: Limits, before: Before | undefined): void {
    const earlier = this.#pending.get(owner.id);
    const repeat = () => this.#repeat(owner, limits, before);
    const work = (earlier ? earlier.work.then(repeat) : repeat()).finally(() => {
      if (this.#pending.get(owner.id)?.work === work) this.#pending.delete(owner.id);
    });
    this.#pending.set(owner.id, { work, commands: commandsWith(before) + (earlier?.commands ?? 0) });
  }

  /**
   * A message reports a grant that no call waits for. It is ignored unless the grant is for this client: any process
   * with access to the channels can copy a message from one inbox to another.
   */
  hear(grant: PushedGrant, isHeld: (owner: LockOwner) => boolean): void {
    const departed = this.late.claim(grant);
    if (departed && !isHeld(departed.owner)) this.start(departed.owner, departed.limits);
  }

  again(owner: LockOwner, limits: Limits): void {
    if (!this.#pending.has(owner.id)) this.start(owner, limits);
  }

  /**
   * Releases what a command grants after its caller gave up. Such a command may be executed after the release that
   * should have ended it: a script that Redis did not know is sent once more.
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

  /** Called when Redis may accept commands that it has refused. */
  reconnected(): void {
    this.refused.hasten();
  }

  /**
   * Waits for all releases, but at most `attemptTimeoutMs` for each command of the longest one, and for none that Redis
   * refuses. The remaining locks expire.
   */
  async settle(attemptTimeoutMs: number): Promise<void> {
    this.refused.close();
    const pending = [...this.#pending.values()];
    const commands = pending.reduce((most, each) => Math.max(most, each.commands), 1);
    const timer = this.clock.setTimer(() => this.#stop.abort(), commands * attemptTimeoutMs);
    await Promise.all(pending.map(({ work }) => work));
    timer.cancel();
    this.#stop.abort();
  }

  /**
   * Sends a command until it is answered, also after a refusal; until it is no longer needed (`send` returns nothing);
   * or until `giveUpAt`.
   */
  untilAnswered(send: () => Promise<boolean> | undefined, timeoutMs: number, giveUpAt = Infinity): Promise<unknown> {
    const pauseMs = (failures: number): number => backoff(PAUSE_MS, failures);
    const { refused } = this;
    const { signal } = this.#stop;
    return askUntil(this.alarms, this.clock, { send, timeoutMs, giveUpAt, pauseMs, refused, signal });
  }

  async #repeat(owner: LockOwner, { leaseMs, attemptTimeoutMs }: Limits, before: Before | undefined): Promise<void> {
    const send = () => (before ? this.#inOrder(before, owner) : this.#release(owner));
    await this.untilAnswered(send, commandsWith(before) * attemptTimeoutMs, this.clock.now() + leaseMs);
  }

  /** Sends the release even if the command before it fails. */
  async #inOrder(before: Before, owner: LockOwner): Promise<boolean> {
    const [first] = await Promise.allSettled([before()]);
    const wasHeld = await this.#release(owner);
    if (first.status === 'rejected') throw first.reason;
    return wasHeld;
  }

  #release(owner: LockOwner, lazily?: boolean): Promise<boolean> {
    const retained = this.#retained.get(owner);
    if (retained?.releasedBy) return retained.releasedBy.release(lazily);
    const retention = retained?.retention?.();
    return retention ? this.store.retain(owner, retention, lazily) : this.store.release(owner, lazily);
  }
}

/** The rest of the lock's life, and the time limit of one command. */
type Limits = Pick<ResolvedLockOptions, 'leaseMs' | 'attemptTimeoutMs'>;

/** An owner that has given up, although the store may still grant its request. */
interface Departed {
  readonly owner: LockOwner;
  readonly limits: Limits;
}

interface OrphanEntry extends Departed {
  readonly endsAt: number;
  unanswered: number;
  heardToken: number;
}

/** For one resource and for all. Beyond it the oldest entries are forgotten, and what they are granted expires. */
const MOST = { ofResource: 16, resources: 10_000 };
/** The number of resources that each addition checks. More than one, so that the sweep is faster than the additions. */
const SWEPT_AT_ONCE = 2;

/**
 * Waiters that have given up while a command of theirs may still be executed, for example after a broken connection.
 * What they are still granted has to be released. Other grant messages are not for this client.
 */
export class LateGrants {
  readonly #byResource = new Map<string, OrphanEntry[]>();

  constructor(private readonly clock: Clock) {}

  get size(): number {
    return this.#byResource.size;
  }

  expect(owner: LockOwner, { leaseMs, attemptTimeoutMs }: Limits, unanswered: number): void {
    this.#sweep();
    const { resource } = owner;
    const entries = this.#byResource.get(resource)?.slice(1 - MOST.ofResource) ?? [];
    // A command that is executed now keeps its place for one lease time, and then its lease for another.
    const endsAt = this.clock.now() + 2 * leaseMs;
    // Copied, because the options of a call hold the caller's signal, which must not be kept for that time.
    const limits = { leaseMs, attemptTimeoutMs };
    entries.push({ owner, limits, endsAt, unanswered, heardToken: 0 });
    this.#byResource.delete(resource);
    this.#byResource.set(resource, entries);
  }

  answered({ resource, id }: LockOwner): void {
    const entries = this.#byResource.get(resource);
    const entry = entries?.find(({ owner }) => owner.id === id);
    if (entry === undefined || --entry.unanswered > 0) return;
    if (entries!.length === 1) this.#byResource.delete(resource);
    else entries!.splice(entries!.indexOf(entry), 1);
  }

  /** Finds the owner that a grant is for, once for each grant, however often its message comes. */
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
