import type { ActiveHolds } from '../holding/active-holds.js';
import { callSiteOf, type Origin, recordOrigin } from '../util/call-site.js';
import type { Clock, Timer } from '../util/clock.js';
import type { CompositeLease } from './composite-lease.js';
import type { LockObservers } from '../api/events.js';
import type { SingleLease } from './single-lease.js';
import type { Hold } from '../holding/hold.js';
import type { Watchdog } from '../holding/watchdog.js';

/** What becomes of a lease that was forgotten: it is renewed for as long as the process lives, or no more. */
export const ON_LEAK = ['warn', 'expire'] as const;
export type OnLeak = (typeof ON_LEAK)[number];

const NOT_RECORDED: Origin = {};

/** A lease that lives for this long is watched. Most do not, and shall cost nothing. */
const LOOK_MS = 500;
/** A stack costs as much as a lease that is handed over inside the process, so only so many are recorded between two looks. */
const ORIGINS_PER_LOOK = 100;

interface Watched {
  readonly hold: Hold;
  readonly callSite: string | undefined;
}

/**
 * Notices leases that can never be released, because nothing refers to them any more: the object that `acquire()` gave was collected by
 * the garbage collector. Nothing in here or anywhere in the library keeps that object for longer than the first look.
 */
export class Leaks {
  readonly #registry = new FinalizationRegistry<Watched>((watched) => this.#forgotten(watched));
  #timer: Timer | undefined;
  #originsLeft = ORIGINS_PER_LOOK;

  constructor(
    private readonly active: ActiveHolds,
    private readonly observers: LockObservers,
    private readonly clock: Clock,
    private readonly watchdog: Watchdog,
    private readonly onLeak: OnLeak,
  ) {}

  /** Where the running call comes from. @param below the function that the user has called */
  origin(below: (...args: never[]) => unknown): Origin {
    this.#lookLater();
    if (this.#originsLeft === 0) return NOT_RECORDED;
    this.#originsLeft--;
    return recordOrigin(below);
  }

  /** Watches a lease whose release is up to the user. A fixed one ends by itself. */
  track<L extends SingleLease | CompositeLease>(lease: L, origin: Origin): L {
    if ('hold' in lease) trackHold(lease.hold, lease, origin);
    else for (const hold of lease.holds) trackHold(hold, lease, origin);
    this.#lookLater();
    return lease;
  }

  /** The lease has ended; or its signal was asked for: whoever keeps only that may still depend on it. */
  untrack(hold: Hold): void {
    hold.handle = hold.origin = undefined;
    if (!hold.isWatched) return;
    hold.isWatched = false;
    this.#registry.unregister(hold);
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
    // As text: the frames of a stack keep the objects whose methods they are.
    this.#registry.register(handle, { hold, callSite: callSiteOf(hold.origin) }, hold);
    hold.handle = hold.origin = undefined;
    hold.isWatched = true;
    hold.dropContext();
  }

  #forgotten({ hold, callSite }: Watched): void {
    hold.isWatched = false;
    if (!hold.isHeld()) return;
    const { ownership, fencingToken } = hold;
    const isRenewed = this.onLeak === 'warn';
    const heldMs = this.clock.now() - hold.acquiredAt;
    this.observers.emit({ type: 'leaked', resource: ownership.resource, fencingToken, heldMs, callSite, isRenewed });
    if (isRenewed || !hold.isHeld()) return;
    hold.renewNoMore();
    this.watchdog.watch(hold);
  }
}

function trackHold(hold: Hold, handle: object, origin: Origin): void {
  // Where it was entered again, the first lease of it is watched.
  if (!hold.renewable || hold.depth > 1) return;
  hold.handle = handle;
  hold.origin = origin;
}
