import type { ActiveHolds } from '../holding/lock-context.js';
import { callSiteOf, type Origin, recordOrigin } from '../util/call-site.js';
import type { Clock, Timer } from '../util/clock.js';
import type { LockObservers } from '../events/observers.js';
import type { Hold } from '../holding/hold.js';
import type { Observation } from '../tracing/observation.js';
import type { Watchdog } from '../holding/watchdog.js';

/** What to do about a leaked lease: see the module option `onLeak`. */
export const ON_LEAK = ['warn', 'expire'] as const;
export type OnLeak = (typeof ON_LEAK)[number];

const NOT_RECORDED: Origin = {};
/** In place of the origin of a hold that is watched: its call site is text by then. */
const WATCHED: Origin = {};

/** A lease that lives this long is watched. Most do not live this long, and must cost nothing. */
const LOOK_MS = 500;
/** The maximum number of stacks recorded between two checks. */
const ORIGINS_PER_LOOK = 100;

interface Trackable {
  readonly hold?: Hold;
  readonly holds: readonly Hold[];
}

/**
 * Notices leases that can never be released, because the garbage collector has collected the object that `acquire()`
 * returned. Nothing in the library keeps that object for longer than the first look.
 */
export class Leaks {
  readonly #registry = new FinalizationRegistry<Hold>((hold) => this.#forgotten(hold));
  #timer: Timer | undefined;
  #originsLeft = ORIGINS_PER_LOOK;

  constructor(
    private readonly active: ActiveHolds,
    private readonly observers: LockObservers,
    private readonly clock: Clock,
    private readonly watchdog: Watchdog,
    private readonly onLeak: OnLeak,
    private readonly observation: Observation,
  ) {}

  /** Records the origin of a call after it has begun: while the store works, that costs the call nothing. */
  withOrigin<T>(below: (...args: never[]) => unknown, begin: (origin: Origin) => T): T {
    if (this.#originsLeft <= 0) return begin(NOT_RECORDED);
    const origin: Origin = {};
    const begun = begin(origin);
    // Not counted before: a call that throws records none, and sets no timer that would allow others.
    this.#originsLeft--;
    recordOrigin(below, origin);
    this.#lookLater();
    return begun;
  }

  /** Watches a lease that the user has to release. A fixed lease ends by itself, so it is not watched. */
  track<L extends Trackable>(lease: L, origin: Origin): L {
    if (lease.hold) trackHold(lease.hold, lease, origin);
    else for (const hold of lease.holds) trackHold(hold, lease, origin);
    this.#lookLater();
    return lease;
  }

  /** Call this when the lease has ended, or when its signal was read: the user may keep only the signal. */
  untrack(hold: Hold): void {
    if (hold.origin === WATCHED) this.#registry.unregister(hold);
    hold.handle = hold.origin = undefined;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #lookLater(): void {
    this.#timer ??= this.clock.setTimer(() => this.#look(), LOOK_MS, { background: true });
  }

  #look(): void {
    this.#timer = undefined;
    this.#originsLeft = ORIGINS_PER_LOOK;
    const now = this.clock.now();
    for (const hold of this.active.list()) {
      if (!hold.handle) continue;
      if (now - hold.acquiredAt < LOOK_MS) this.#lookLater();
      else this.#watch(hold, hold.handle);
    }
  }

  #watch(hold: Hold, handle: object): void {
    // As text, because the frames of a stack keep their objects alive.
    hold.callSite = callSiteOf(hold.origin);
    this.#registry.register(handle, hold, hold);
    hold.handle = undefined;
    hold.origin = WATCHED;
    hold.dropContext();
  }

  #forgotten(hold: Hold): void {
    hold.origin = undefined;
    if (!hold.checkHeld()) return;
    const { callSite } = hold;
    hold.isLeaked = true;
    const isRenewed = this.onLeak === 'warn';
    const heldMs = this.clock.now() - hold.acquiredAt;
    this.observers.emit({ type: 'leaked', ...this.observers.describe(hold), heldMs, callSite, isRenewed });
    this.observation.leaked(hold, heldMs);
    if (isRenewed || !hold.checkHeld()) return;
    hold.renewNoMore();
    this.watchdog.watch(hold);
  }
}

function trackHold(hold: Hold, handle: object, origin: Origin): void {
  // Only the first lease of a lock that was entered several times is watched.
  if (!hold.renewable || hold.depth > 1) return;
  hold.handle = handle;
  hold.origin = origin;
}
