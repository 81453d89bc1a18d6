import { type Call, heldUntil, reenters } from '../../history/call.js';
import type { FaultSpan, History } from '../../history/history.js';
import { BOUNDS, type Bounds } from '../bounds.js';
import { endOf, isWaiter } from './liveness.js';
import { possession } from '../exclusion/possession.js';
import { Spans } from '../spans.js';
import { Struck } from '../struck.js';

/** The time in which a resource had no working holder, while a call waited for it. */
export interface Gap {
  readonly resource: string;
  /**
   * When its holder, or the last candidate for the next grant, died or was paused; when the release was called whose
   * message got lost; or when Redis had recovered and the resource was free. For a message connection: when it began to
   * hang.
   */
  readonly from: number;
  /** The next grant. For a connection: the start of the next one. */
  readonly to: number;
  readonly ms: number;
  readonly leaseMs: number;
}

/** The start of the measurement of a gap. */
export type GapKind = 'died' | 'stopped' | 'message' | 'redis' | 'inbox';

export interface Spread {
  readonly count: number;
  readonly medianMs: number;
  readonly maxMs: number;
  /** The largest in leases: for what is bound by them. */
  readonly maxLeases: number;
}

/**
 * Returns the gaps of each kind of fault, as `died: kill` or `redis: restart`, without gaps that overlap another fault
 * of Redis, or of the waiter.
 */
export function gaps(history: History, bounds: Bounds = BOUNDS): ReadonlyMap<string, readonly Gap[]> {
  const found = new Map<string, Gap[]>();
  const note = (kind: GapKind, fault: string, gap: Gap | undefined): void => {
    if (!gap) return;
    const key = `${kind}: ${fault}`;
    const list = found.get(key);
    if (list) list.push(gap);
    else found.set(key, [gap]);
  };
  const struck = new Struck(history, { except: bounds.losesMessages });
  const silences = new Silences(history);
  const lines = [...history.callsByResource].map(([resource, calls]) => {
    return new ResourceLine(history, resource, calls, struck, silences);
  });
  for (const line of lines) {
    for (const call of line.exclusive) {
      const { diedAt, lost, invoked } = call;
      const isEnded = (at: number) => (call.endCalledAt ?? Infinity) <= at || heldUntil(call) <= at;
      if (diedAt !== undefined && !isEnded(diedAt)) {
        const fault = faultOf(history.faults, invoked.process, diedAt);
        note('died', fault, line.gapAfterSilence(diedAt, call));
      } else if (lost && lost.at - lost.loopRanAt > invoked.leaseMs / 2 && !isEnded(lost.loopRanAt)) {
        const fault = faultOf(history.faults, invoked.process, lost.loopRanAt);
        note('stopped', fault, line.gapAfterSilence(lost.loopRanAt, call));
      }
    }
    for (const fault of history.faults.filter((one) => bounds.losesMessages(one))) {
      for (const call of line.releasedWithin(fault)) {
        note('message', fault.kind, line.gapAfterMessage(call, fault.victims));
      }
    }
    for (const fault of struck.ofRedis) {
      if (fault.to < Infinity) note('redis', fault.kind, line.gapAfterRedis(fault));
    }
  }
  for (const gap of hungInboxes(history)) note('inbox', HANGS, gap);
  return found;
}

/** A fault that lasts until it is detected. */
const HANGS = 'network: the connection for messages hangs';
/** A process that is paused for longer detects it later. */
const STILL_MS = 100;
/**
 * Each connection that loses messages before one of its probes has arrived is replaced twice as late as the one before.
 * A probe arrives at least this often.
 */
const PROVEN_MS = 2_000;

/** Returns the hangs of connections for messages, without overlapping faults. */
function hungInboxes(history: History): Gap[] {
  const struck = new Struck(history, { except: ({ kind }) => kind === HANGS, stallMs: STILL_MS });
  return history.faults.flatMap(({ kind, from, to, missed, victims: [victim] }) => {
    if (kind !== HANGS || missed || to === Infinity || struck.spansOf(victim!).touches(from, to)) return [];
    const isUnproven = history.faults.some((other) => {
      const isItsNetwork = other.kind.startsWith('network:') && other.victims.includes(victim!);
      return isItsNetwork && other.to <= from && other.to > from - PROVEN_MS;
    });
    if (isUnproven) return [];
    const call = history.calls.find(({ invoked }) => invoked.process === victim);
    return call ? [{ resource: '', from, to, ms: to - from, leaseMs: call.invoked.leaseMs }] : [];
  });
}

/** Returns the spread of the gaps of one kind. */
export function spreadOf(found: readonly Gap[]): Spread {
  const sorted = found.map(({ ms }) => ms).sort((a, b) => a - b);
  const maxLeases = found.reduce((most, { ms, leaseMs }) => Math.max(most, ms / leaseMs), 0);
  return {
    count: sorted.length,
    medianMs: sorted[sorted.length >> 1] ?? 0,
    maxMs: sorted.at(-1) ?? 0,
    maxLeases,
  };
}

/** The fault that a process was under then, or the last one that had struck it. */
function faultOf(faults: readonly FaultSpan[], process: string, at: number): string {
  // A fault may be logged slightly later than its effect.
  return faults.findLast(({ victims, from }) => victims.includes(process) && from <= at + 50)?.kind ?? 'no fault';
}

/** Spans in which processes were silent, because they died or stalled. */
class Silences {
  readonly #struck: Struck;

  constructor(private readonly history: History) {
    this.#struck = new Struck(history);
  }

  /**
   * When the last one of these fell silent between; `from` where none did. Nothing where a network came between: what such a process
   * sends may arrive, or be heard, at any time.
   *
   * @param stallMs blockers that are shorter do not count
   */
  lastOf(processes: readonly string[], from: number, to: number, stallMs: number): number | undefined {
    if (this.#struck.redis.touches(from, to)) return undefined;
    let last = from;
    for (const process of processes) {
      const diedAt = this.history.deaths.get(process) ?? Infinity;
      const stalls = this.#struck.stallsOf(process, from, to).filter((stall) => stall.to - stall.from >= stallMs);
      for (const fault of this.#struck.faultsOf(process)) {
        if (fault.from > to || fault.to < from) continue;
        const isDeadly = diedAt <= fault.to;
        const isStill = stalls.some((stall) => stall.from <= fault.from + 50 && stall.to >= fault.to - 50);
        if (!isDeadly && !isStill) return undefined;
      }
      for (const at of [diedAt, ...stalls.map((stall) => stall.from)]) if (at <= to) last = Math.max(last, at);
    }
    return last;
  }
}

/** The grants of one resource, and who waited for it. */
class ResourceLine {
  /** Exclusive calls. */
  readonly exclusive: readonly Call[];
  readonly #grants: readonly Call[];
  readonly #waiters: readonly Call[];
  /** Calls that want several resources at once: they may hold this one long before they are granted. */
  readonly #composites: readonly Call[];
  readonly #longestMs: number;
  readonly #releases: readonly Call[];
  /** Spans in which the resource may have been held. */
  readonly #taken: Spans;
  /** Each of them may be first in the queue at some time. */
  readonly #callers: ReadonlySet<string>;

  constructor(
    private readonly history: History,
    private readonly resource: string,
    calls: readonly Call[],
    private readonly struck: Struck,
    private readonly silences: Silences,
  ) {
    this.#callers = new Set(calls.map(({ invoked }) => invoked.process));
    this.#taken = new Spans(calls.flatMap(possession));
    this.#grants = calls
      .filter((call) => call.granted && !reenters(call))
      .sort((a, b) => a.granted!.at - b.granted!.at);
    this.exclusive = this.#grants.filter((call) => {
      const { mode } = call.invoked;
      return mode !== 'read' && mode !== 'semaphore' && call.downgradedAt === undefined;
    });
    this.#composites = calls.filter(({ invoked }) => invoked.resources.length > 1);
    this.#waiters = calls.filter(isWaiter).sort((a, b) => a.invoked.at - b.invoked.at);
    this.#longestMs = this.#waiters.reduce((most, call) => Math.max(most, endOf(call, history) - call.invoked.at), 0);
    this.#releases = this.exclusive
      .filter(({ releasedAt }) => releasedAt !== undefined)
      .sort((a, b) => a.releaseCalledAt! - b.releaseCalledAt!);
  }

  releasedWithin({ from, to }: FaultSpan): Call[] {
    const found: Call[] = [];
    for (let index = after(this.#releases, from, ({ releaseCalledAt }) => releaseCalledAt!); ; index++) {
      const call = this.#releases[index];
      if (!call || call.releaseCalledAt! > to) return found;
      found.push(call);
    }
  }

  /**
   * Ends at the next grant after `call`, if one of `victims` (or anyone, without `victims`) waited for it all the time.
   */
  gapFrom(from: number, call: Call, victims?: readonly string[]): Gap | undefined {
    const next = this.#grants[after(this.#grants, from, ({ granted }) => granted!.at)];
    if (!next || (victims && !victims.includes(next.invoked.process))) return undefined;
    const to = next.granted!.at;
    if (this.struck.redis.touches(from, to) || !this.#someoneWaited(from, to)) return undefined;
    if (this.#isPartBetween(call, next)) return undefined;
    return { resource: this.resource, from, to, ms: to - from, leaseMs: call.invoked.leaseMs };
  }

  /**
   * From the death of its holder to the next grant. If a possible next in line died or stalled after that, starts
   * there: it may have been granted the resource without knowing, until its place has expired.
   */
  gapAfterSilence(from: number, call: Call): Gap | undefined {
    const gap = this.gapFrom(from, call);
    if (!gap) return undefined;
    const others = [...this.#callers].filter((process) => process !== call.invoked.process);
    const silentFrom = this.silences.lastOf(others, gap.from, gap.to, gap.leaseMs / 4);
    return silentFrom === undefined ? undefined : { ...gap, from: silentFrom, ms: gap.to - silentFrom };
  }

  /**
   * From a release whose message a victim missed to the grant that the victim found by itself, if nothing else delayed
   * it.
   */
  gapAfterMessage(call: Call, victims: readonly string[]): Gap | undefined {
    const gap = this.gapFrom(call.releaseCalledAt!, call, victims);
    if (!gap || this.struck.spansOf(call.invoked.process).touches(gap.from, gap.to)) return undefined;
    const isDisturbed = this.#waiters.some((waiter) => {
      if (waiter.invoked.at > gap.to || endOf(waiter, this.history) < gap.from) return false;
      const { refused, invoked: asked } = waiter;
      // Its grant was passed on, with another message that got lost.
      const gaveUp = refused !== undefined && refused.at < gap.to && victims.includes(asked.process);
      // It may have been granted the resource first and been unable to use it.
      return gaveUp || this.struck.spansOf(asked.process).touches(gap.from, gap.to);
    });
    return isDisturbed ? undefined : gap;
  }

  /** From when Redis had recovered and the resource was free to the next grant. */
  gapAfterRedis({ to: back }: FaultSpan): Gap | undefined {
    const next = this.#grants[after(this.#grants, back, ({ granted }) => granted!.at)];
    if (!next) return undefined;
    const to = next.granted!.at;
    const taken = this.#taken.firstFrom(back);
    // Held through the outage: whatever ended that is not what Redis did.
    if (taken && taken.from <= back) return undefined;
    const others = [...this.struck.ofRedis.filter((fault) => fault.to !== back), ...this.struck.slow];
    const isOther = others.some((span) => span.from <= to && span.to >= back);
    if (isOther || !this.#someoneWaited(back, to, true)) return undefined;
    return { resource: this.resource, from: back, to, ms: to - back, leaseMs: next.invoked.leaseMs };
  }

  /**
   * Returns true if it may share a part of another call's resources, granted between these two. Tokens follow the order
   * of grants.
   */
  #isPartBetween(call: Call, next: Call): boolean {
    const [before, after] = [call, next].map(({ granted }) => granted!.tokens.get(this.resource)!);
    const freedAt = next.granted!.at + next.invoked.leaseMs / 4; // what is said of it may be said a little later
    return this.#composites.some(({ granted, refused, diedAt, invoked }) => {
      const token = granted?.tokens.get(this.resource);
      if (token !== undefined) return before! < token && token <= after!;
      const endedAt = refused?.at ?? diedAt;
      if (endedAt === undefined) return invoked.at < freedAt;
      // It has given back what it had by then, or that has expired.
      return endedAt > call.granted!.at - (diedAt === undefined ? 0 : invoked.leaseMs) && endedAt < freedAt;
    });
  }

  #someoneWaited(from: number, to: number, isRedisBack = false): boolean {
    for (let index = after(this.#waiters, from - this.#longestMs - 1, ({ invoked }) => invoked.at); ; index++) {
      const call = this.#waiters[index];
      if (!call || call.invoked.at > from) return false;
      if (endOf(call, this.history) < to) continue;
      const { process } = call.invoked;
      const own = [...this.struck.faultsOf(process), ...this.struck.stallsOf(process, from, to)];
      const isStruck = isRedisBack
        ? own.some((span) => span.from <= to && span.to >= from)
        : this.struck.spansOf(process).touches(from, to);
      if (!isStruck) return true;
    }
  }
}

/** The index of the first item after `at`, by binary search. */
function after<T>(items: readonly T[], at: number, timeOf: (item: T) => number): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeOf(items[middle]!) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
