import { OTHER_GROUP } from '../api/holder.js';
import { isSharedMode, type LockMode } from '../api/lock-mode.js';
import type { LockOrderEdge } from '../events/events.js';
import type { LockObservers } from '../events/observers.js';
import { applicationSiteOf, type Origin, recordOriginInside } from '../util/call-site.js';
import type { Clock } from '../util/clock.js';
import { quote } from '../util/quoted.js';
import type { Hold } from './hold.js';

/** The maximum number of edges. An application has some dozens. */
const MAX_EDGES = 1_000;
/** The cycles that are kept for the report of this process. */
const MAX_CYCLES = 5;

/** The maximum number of origins in this time: each costs several microseconds to record. */
const ORIGINS = 100;
const ORIGINS_EVERY_MS = 500;

/** Enough frames for the lines of this library before the first one of the application, and before the next one. */
const SHALLOW = 20;
const DEEP = 40;

interface Wish {
  readonly resource: string;
  readonly mode: LockMode;
  /** `true` if the same call holds them: it wants several resources. */
  readonly isOfSeveral?: boolean;
}

/**
 * Records the orders in which this process nests locks, by the groups of their names. It reports two orders that make a
 * cycle as soon as both were seen, even if no call has waited for the other. A known order costs one look-up.
 */
export class LockOrder {
  /** By the held group, then the wanted one. A pair has several if some only read. */
  readonly #edges = new Map<string, Map<string, LockOrderEdge[]>>();
  #size = 0;
  /** The first ones that were found: they stay wrong until the code changes. */
  readonly cycles: (readonly LockOrderEdge[])[] = [];
  #hasWarned = false;
  #originsLeft = ORIGINS;
  #originsSince = -Infinity;
  /** Called with each cycle beside the observers. If it throws, the call that closed the cycle ends. */
  onCycle: ((edges: readonly LockOrderEdge[]) => void) | undefined;

  constructor(
    private readonly observers: LockObservers,
    private readonly clock: Clock,
    private readonly warn: (line: string) => void,
  ) {}

  /** `true` if calls for several resources count, too: alone, those in one process never make a cycle. */
  get hasEdges(): boolean {
    return this.#size > 0 || this.onCycle !== undefined;
  }

  list(): LockOrderEdge[] {
    return [...this.#edges.values()].flatMap((wanted) => [...wanted.values()].flat());
  }

  note(holds: readonly Hold[], wish: Wish): void {
    const { groups } = this.observers;
    const wanted = groups.ofName(wish.resource);
    if (wanted === OTHER_GROUP || wish.mode === 'semaphore') return;
    for (const [index, hold] of holds.entries()) {
      // Another holder of a semaphore may give its permits back.
      if (hold.mode === 'semaphore' || hold.owner.resource === wish.resource) continue;
      const held = groups.ofName(hold.owner.resource);
      if (held === OTHER_GROUP) continue;
      const known = this.#edges.get(held)?.get(wanted);
      if (known === undefined || !known.some((edge) => covers(edge, hold, wish))) {
        this.#add(edgeOf(held, hold, wanted, wish, index === 0));
      }
    }
  }

  /** Records the origin of a nested call, in case it waits in a deadlock. Samples them at a high rate. */
  recordOrigin(): Origin | undefined {
    if (this.#originsLeft === 0) {
      const now = this.clock.now();
      if (now < this.#originsSince + ORIGINS_EVERY_MS) return undefined;
      this.#originsSince = now;
      this.#originsLeft = ORIGINS;
    }
    this.#originsLeft--;
    return recordOriginInside(this.recordOrigin, SHALLOW);
  }

  #add(edge: LockOrderEdge): void {
    if (this.#size === MAX_EDGES) return this.#warnOnce();
    let wanted = this.#edges.get(edge.held);
    if (wanted === undefined) this.#edges.set(edge.held, (wanted = new Map<string, LockOrderEdge[]>()));
    const edges = wanted.get(edge.wanted);
    if (edges === undefined) wanted.set(edge.wanted, [edge]);
    else edges.push(edge);
    this.#size++;
    const cycle = this.#cycleOf(edge);
    if (cycle === undefined) return;
    if (this.cycles.length < MAX_CYCLES) this.cycles.push(cycle);
    const { service } = this.observers;
    this.observers.emit({ type: 'lockOrder', service, edges: cycle });
    this.onCycle?.(cycle);
  }

  #cycleOf(last: LockOrderEdge): readonly LockOrderEdge[] | undefined {
    if (last.held === last.wanted) {
      const other = this.#edges
        .get(last.held)!
        .get(last.held)!
        .find((edge) => isOpposite(edge, last));
      return other && Object.freeze([other, last]);
    }
    const paths: (readonly LockOrderEdge[])[] = [[last]];
    const seen = new Set([last]);
    for (const path of paths) {
      const from = path.at(-1)!;
      for (const next of [...(this.#edges.get(from.wanted)?.values() ?? [])].flat()) {
        if (seen.has(next) || next.wanted === next.held || !meets(from, next)) continue;
        // The new edge is the last one: the others were there before.
        if (next.wanted === last.held && meets(next, last)) return Object.freeze([...path.slice(1), next, last]);
        seen.add(next);
        paths.push([...path, next]);
      }
    }
    return undefined;
  }

  #warnOnce(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.warn(
      `Locks were nested in ${MAX_EDGES} different orders of groups, and further orders are not checked. If the ` +
        'names of your locks begin with text that differs in each call, set the option group. This is logged once. ' +
        'See docs/guide/several-resources.md#locks-in-different-orders.',
    );
  }
}

function edgeOf(held: string, hold: Hold, wanted: string, wish: Wish, isInnermost: boolean): LockOrderEdge {
  const origin = recordOriginInside(edgeOf, DEEP);
  const wantedAt = applicationSiteOf(origin);
  const outerAt = isInnermost ? applicationSiteOf(origin, 'runUnder') : undefined;
  const heldAt = wish.isOfSeveral ? wantedAt : outerAt;
  return Object.freeze({
    held,
    heldResource: hold.owner.resource,
    heldMode: hold.mode,
    ...(heldAt !== undefined && { heldAt }),
    wanted,
    wantedResource: wish.resource,
    wantedMode: wish.mode,
    ...(wantedAt !== undefined && { wantedAt }),
  });
}

/**
 * Returns true if the known edge implies this one: an order of writers covers readers. Inside of one group, the names
 * count.
 */
function covers(known: LockOrderEdge, hold: Hold, wish: Wish): boolean {
  return (
    (!isSharedMode(known.heldMode) || isSharedMode(hold.mode)) &&
    (!isSharedMode(known.wantedMode) || isSharedMode(wish.mode)) &&
    (known.held !== known.wanted || isUpwards(known) === hold.owner.resource < wish.resource)
  );
}

function isUpwards({ heldResource, wantedResource }: LockOrderEdge): boolean {
  return heldResource < wantedResource;
}

function isOpposite(edge: LockOrderEdge, other: LockOrderEdge): boolean {
  return isUpwards(edge) !== isUpwards(other) && meets(edge, other) && meets(other, edge);
}

/** Returns true if calls on the two edges may block each other. Readers do not wait for readers. */
function meets({ wantedMode }: LockOrderEdge, { heldMode }: LockOrderEdge): boolean {
  return !(isSharedMode(wantedMode) && isSharedMode(heldMode));
}

export function describeOrders(edges: readonly LockOrderEdge[]): string {
  return (
    `Locks are taken in different orders, so calls can wait for each other: a deadlock. ` +
    `${edges.map(describeOrder).join(' ')} Take them in one order everywhere, or all in one call.`
  );
}

function describeOrder({ heldResource, heldAt, wantedResource, wantedAt }: LockOrderEdge): string {
  const held = `${quote(heldResource)}${heldAt === undefined ? '' : `, at ${heldAt},`}`;
  return `A call that held ${held} wanted ${quote(wantedResource)}${wantedAt === undefined ? '' : `, at ${wantedAt}`}.`;
}
