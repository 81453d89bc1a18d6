import { type Holder, OTHER_GROUP } from '../../../../kernel/api/holder.js';
import { groupNamed, LEADER_PREFIX } from '../../../../kernel/api/resource.js';
import { isSharedMode } from '../../../../kernel/api/lock-mode.js';
import type { LockEventOf } from '../../../../kernel/events/events.js';
import { type LockObservers, MAX_GROUPS } from '../../../../kernel/events/observers.js';
import type { BlockedTime } from '../../../../kernel/events/telemetry.js';
import { callSiteOf } from '../../../../kernel/util/call-site.js';
import type { Clock } from '../../../../kernel/util/clock.js';
import { type BlockedPair, Blockers, type BlockingGroup, UNKNOWN_GROUP } from './blockers.js';
import type { Contention, GroupContention } from './contention.js';
import { DurationHistogram } from './duration-histogram.js';
import { WaitTimeline } from './wait-timeline.js';
import { entryOf } from '../../../../kernel/util/objects.js';

interface ContentionDeps {
  readonly observers: LockObservers;
  readonly clock: Clock;
  readonly instanceId: string;
  /** The lease of this process with this token, or with a token that counts up from it. */
  readonly ownLease: (resource: string, fencingToken: number) => Pick<End, 'fencingToken' | 'group'> | undefined;
  readonly waitingNow: () => Map<string, number>;
  /** The sampling interval for origins of calls that have waited; 0: none. */
  readonly callSiteEvery: number;
}

type End = LockEventOf<'released' | 'lost' | 'releaseFailed'>;
type WaitEnd = LockEventOf<'acquired' | 'notAcquired'>;

interface GroupTimes {
  readonly wait: DurationHistogram;
  readonly hold: DurationHistogram;
  waited: number;
}

const TYPES = ['waiting', 'acquired', 'notAcquired', 'released', 'lost', 'releaseFailed'] as const;

/**
 * Counts for which groups the calls of this process wait, from the events and from the holders in the replies to its
 * waiting calls. Until it is started, it does not listen, and costs nothing.
 *
 * A wait is split by time: the time between two replies counts for the holder in the first of them, and a change of
 * holders inside this process counts from when it happens.
 */
export class ContentionProfile {
  /** Stops to listen. Only set while it listens. */
  #unlisten: (() => void) | undefined;
  /** The calls that waited already when it was started, by resource: it received no event for them. */
  #unheard = new Map<string, number>();
  #startedAt = 0;
  #isCounting = false;
  #since = 0;
  #sinceWall = 0;
  #groups = new Map<string, GroupTimes>();
  #blockers = new Blockers();
  readonly #waiting = new Map<string, number>();
  /** By resource, while calls of this process wait for it. */
  readonly #timelines = new Map<string, WaitTimeline>();
  readonly #listeners = new Set<(blocked: BlockedTime) => void>();
  #sampled = 0;

  constructor(private readonly deps: ContentionDeps) {}

  /** Begins to count. The second call changes nothing. */
  start(): void {
    this.#listen();
    this.#hearAnswers();
    if (this.#isCounting) return;
    this.#isCounting = true;
    this.#reset();
  }

  /** Returns the counts since the start, or since the last reset. */
  read(top: number, reset: boolean): Contention {
    this.start();
    const { clock, observers, instanceId } = this.deps;
    const groups = [...this.#groups].map(([group, { wait, hold, waited }]): GroupContention => {
      const waiting = this.#waiting.get(group) ?? 0;
      return Object.freeze({ group, waiting, waited, wait: wait.read(), hold: hold.read() });
    });
    groups.sort((a, b) => b.wait.totalMs - a.wait.totalMs || b.hold.totalMs - a.hold.totalMs);
    const contention = Object.freeze({
      service: observers.service,
      instanceId,
      since: this.#sinceWall,
      forMs: Math.round(clock.now() - this.#since),
      groups: Object.freeze(groups.slice(0, top)),
      blockers: this.#blockers.top(top),
    });
    if (reset) this.#reset();
    return contention;
  }

  /**
   * Calls the listener at the end of each wait, with each group that was waited for. With `isQuiet`, waiting calls ask
   * Redis no more often for it: then a wait counts for the holder that it began with, unless another reader wants to
   * know better. @returns a function that removes it
   */
  onBlocked(listener: (blocked: BlockedTime) => void, isQuiet = false): () => void {
    this.#listen();
    if (!isQuiet) this.#hearAnswers();
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (!this.#isCounting && this.#listeners.size === 0) this.#unlisten?.();
    };
  }

  #listen(): void {
    if (this.#unlisten) return;
    const { observers, clock, waitingNow } = this.deps;
    this.#startedAt = clock.now();
    this.#unheard = waitingNow();
    const remove = observers.add((event) => this.#observe(event), TYPES);
    this.#unlisten = () => {
      remove();
      observers.onAnswer = this.#unlisten = undefined;
      this.#waiting.clear();
      this.#timelines.clear();
    };
  }

  #hearAnswers(): void {
    this.deps.observers.onAnswer ??= (resource, { holders }) => this.#seen(resource, holders);
  }

  #reset(): void {
    const { clock } = this.deps;
    this.#since = clock.now();
    this.#sinceWall = clock.wallNow();
    this.#groups = new Map();
    this.#blockers = new Blockers();
    // Calls that wait now will be counted when they end.
    for (const group of this.#waiting.keys()) this.#group(group);
  }

  #observe(event: LockEventOf<(typeof TYPES)[number]>): void {
    switch (event.type) {
      case 'waiting':
        return this.#beginsToWait(event);
      case 'acquired':
        this.#endsToWait(event);
        return this.#isHeldBy(event);
      case 'notAcquired':
        return this.#endsToWait(event);
      default:
        return this.#ends(event);
    }
  }

  #beginsToWait({ resource, group, holders }: LockEventOf<'waiting'>): void {
    entryOf(this.#timelines, resource, () => new WaitTimeline()).waiting++;
    this.#waiting.set(group, (this.#waiting.get(group) ?? 0) + 1);
    if (this.#isCounting) this.#group(group);
    this.#seen(resource, holders);
  }

  #endsToWait({ type, resource, group, waitedMs, hasWaited }: WaitEnd): void {
    this.deps.observers.onOrigin = undefined;
    if (this.#isCounting) {
      const { wait } = this.#group(group);
      // A call that is refused at once has no useful duration. A candidate waits while another one leads.
      if (type === 'acquired' ? !resource.startsWith(LEADER_PREFIX) : hasWaited) wait.record(waitedMs);
    }
    if (!hasWaited || this.#isUnheard(resource, waitedMs)) return;
    if (this.#isCounting) this.#group(group).waited++;
    const left = (this.#waiting.get(group) ?? 0) - 1;
    if (left > 0) this.#waiting.set(group, left);
    else this.#waiting.delete(group);
    const timeline = this.#timelines.get(resource);
    if (timeline === undefined) return;
    const now = this.deps.clock.now();
    const tell = (holderGroup: string, ms: number): void => {
      for (const listener of this.#listeners) listener({ group, holderGroup, waitedMs: ms });
    };
    const pair = this.#blockers.add(group, timeline.share(now - waitedMs, now), tell);
    if (--timeline.waiting <= 0) this.#timelines.delete(resource);
    if (this.#isCounting) this.#askForSite(pair);
  }

  /** Returns true if this wait began before this listened, so its start is unreliable. */
  #isUnheard(resource: string, waitedMs: number): boolean {
    const left = this.#unheard.get(resource);
    // A wait since the same moment was received.
    if (!left || this.deps.clock.now() - waitedMs >= this.#startedAt) return false;
    if (left > 1) this.#unheard.set(resource, left - 1);
    else this.#unheard.delete(resource);
    return true;
  }

  /** Samples the origin of calls that have just ended their wait. */
  #askForSite(pair: BlockedPair): void {
    const { observers, callSiteEvery } = this.deps;
    if (callSiteEvery === 0 || this.#sampled++ % callSiteEvery > 0) return;
    const blockers = this.#blockers;
    observers.onOrigin = (origin) => {
      observers.onOrigin = undefined;
      const callSite = callSiteOf(origin);
      if (callSite !== undefined) blockers.addSite(pair, callSite);
      // No stack was recorded for this call. The next one will do.
      else this.#sampled = 0;
    };
  }

  /** Only an answer of Redis names all holders of a shared lock. */
  #isHeldBy({ resource, mode, group, fencingToken }: LockEventOf<'acquired'>): void {
    const timeline = this.#timelines.get(resource);
    if (timeline === undefined || isSharedMode(mode)) return;
    timeline.ownToken = fencingToken;
    timeline.heldBy([{ group }], this.deps.clock.now());
  }

  #ends(event: End): void {
    if (event.type === 'releaseFailed' && !event.isEnd) return;
    const { resource, fencingToken, group, heldMs } = event;
    if (this.#isCounting) this.#group(group).hold.record(heldMs);
    const timeline = this.#timelines.get(resource);
    // The next lease may begin before the event for the end of this one.
    if (timeline?.ownToken === fencingToken) timeline.ended(this.deps.clock.now());
  }

  /** Takes the holders at this moment from Redis, or from this process itself. */
  #seen(resource: string, holders: readonly Holder[]): void {
    const timeline = this.#timelines.get(resource);
    // An answer without holders adds nothing.
    if (timeline === undefined || holders.length === 0) return;
    timeline.ownToken = undefined;
    const heldMs = holders.reduce((shortest, holder) => Math.min(shortest, holder.heldMs), Infinity);
    const keys = holders.map((holder) => this.#keyOf(resource, holder, timeline));
    timeline.heldBy(keys, this.deps.clock.now() - heldMs);
  }

  #keyOf(resource: string, holder: Holder, timeline: WaitTimeline): BlockingGroup {
    const { isThisProcess, instanceId, fencingToken, label } = holder;
    if (!isThisProcess) {
      // Another program may have written it, and metrics have it as it is.
      const group = label?.group === undefined ? UNKNOWN_GROUP : groupNamed(label.group);
      return group === UNKNOWN_GROUP ? { group, instanceId } : { group, isForeign: true };
    }
    const own = this.deps.ownLease(resource, fencingToken);
    if (own === undefined) return { group: UNKNOWN_GROUP, instanceId };
    if (!isSharedMode(holder.mode)) timeline.ownToken = own.fencingToken;
    return { group: own.group };
  }

  #group(name: string): GroupTimes {
    const known = this.#groups.get(name);
    if (known) return known;
    if (this.#groups.size >= MAX_GROUPS && name !== OTHER_GROUP) return this.#group(OTHER_GROUP);
    const group = { wait: new DurationHistogram(), hold: new DurationHistogram(), waited: 0 };
    this.#groups.set(name, group);
    return group;
  }
}
