import { type Call, heldUntil } from '../../history/call.js';
import type { Ended } from '../../history/entries.js';
import type { History } from '../../history/history.js';
import { BOUNDS, type Bounds } from '../bounds.js';
import { brokenBy, Findings, ms, quote, under } from '../findings.js';
import { Struck } from '../struck.js';
import type { Verdict } from '../violation.js';

/** Timers are whole milliseconds, and may ring a fraction early. */
const EARLY_MS = 2;
/** By so much a process may count a suspend as longer than it was: the uptime is read in hundredths, before and after. */
const SUSPEND_MS = 25;
/** The trusted share of a lease: the rest is for the clocks. */
const SAFE_SHARE = 0.95;

/** Each call that was refused was refused for a reason that the history shows. */
export function errors(history: History, bounds: Bounds = BOUNDS): Verdict {
  const findings = new Findings('errors');
  const reasons = new Reasons(history, bounds);
  for (const call of history.calls) {
    if (!call.refused) continue;
    findings.looked++;
    const { at, code, type, why = '' } = call.refused;
    if (reasons.explain(call, code, at)) continue;
    const { invoked } = call;
    findings.violate(at, () => {
      return (
        `${invoked.process} (${invoked.call}, ${invoked.mode}, waitMs ${invoked.waitMs}) was refused ` +
        `${invoked.resources.map(quote).join(', ')} with ${code} (${type}: ${why}) at ${ms(at)}, after ${ms(at - invoked.at)}, and nothing ` +
        `explains it, with ${under(history, invoked.at, at, invoked.leaseMs)}`
      );
    });
  }
  const calls = new Map(history.calls.map((call) => [call.invoked.call, call]));
  for (const entry of history.of('fail', 'unknown')) {
    if (entry.op === 'acquire') continue;
    findings.looked++;
    const call = calls.get(entry.call)!;
    if (reasons.explainEnd(call, entry)) continue;
    findings.violate(entry.at, () => {
      return (
        `${entry.op} of ${entry.process} (${entry.call}) failed with ${entry.code} at ${ms(entry.at)} (${entry.why ?? ''}), and nothing explains it, with ` +
        `${under(history, entry.at, entry.at, call.invoked.leaseMs)}`
      );
    });
  }
  return findings.verdict();
}

class Reasons {
  readonly #struck: Struck;
  readonly #closings: ReadonlyMap<string, number>;
  /** The kinds of use of each resource: a lock, or a semaphore of a number of permits. */
  readonly #kinds = new Map<string, Set<string>>();
  /**
   * By process and resource, the times at which its turn may have arrived: another call there had just ended. In order.
   */
  readonly #turns = new Map<string, number[]>();

  constructor(
    private readonly history: History,
    private readonly bounds: Bounds,
  ) {
    const leaseMs = history.calls.reduce((longest, { invoked }) => Math.max(longest, invoked.leaseMs), 0);
    this.#struck = new Struck(history, {
      afterMs: leaseMs + bounds.slowMs,
      // Each of the nodes has a sixth of a lease for its answer.
      ...(bounds.splitsVotes && { lateMs: leaseMs / 8 }),
    });
    this.#closings = new Map(history.of('closing').map(({ process, at }) => [process, at]));
    for (const call of history.calls) this.#note(call);
    for (const turns of this.#turns.values()) turns.sort((a, b) => a - b);
  }

  #note({ invoked, endCalledAt, refused, lost }: Call): void {
    for (const resource of invoked.resources) {
      const kinds = this.#kinds.get(resource) ?? new Set();
      kinds.add(invoked.mode === 'semaphore' ? `semaphore of ${invoked.total}` : 'lock');
      this.#kinds.set(resource, kinds);
      const place = placeOf(invoked.process, resource);
      const turns = this.#turns.get(place) ?? [];
      for (const at of [endCalledAt, refused?.at, lost?.at]) if (at !== undefined) turns.push(at);
      this.#turns.set(place, turns);
    }
  }

  explain(call: Call, code: string | null, at: number): boolean {
    const { invoked } = call;
    switch (code) {
      case null:
      case 'LOCK_BUSY':
        return !invoked.queues;
      case 'LOCK_TIMEOUT':
        return this.#isOutOfTime(call, at);
      case 'LOCK_ABORTED':
        return invoked.abortMs !== undefined && at - invoked.at >= invoked.abortMs - EARLY_MS;
      case 'LOCK_QUEUE_FULL':
        return invoked.maxWaiters !== undefined;
      case 'LOCK_SHUTDOWN':
        return (this.#closings.get(invoked.process) ?? Infinity) <= at;
      case 'LOCK_UNAVAILABLE':
        return this.#isStruck(call, invoked.at, at) || this.#hadNoTime(call, at) || this.#cameTooLate(call, at);
      case 'LOCK_MODE_MISMATCH':
        return invoked.resources.some((resource) => this.#kinds.get(resource)!.size > 1);
      case 'LOCK_REENTRY':
        return call.outer !== undefined && !mayEnter(call.outer, call);
      case 'LEASE_LOST':
        return this.#isLost(call, at);
      default:
        return false;
    }
  }

  /** A release or a downgrade that failed. */
  explainEnd(call: Call, { code, at, op }: Ended): boolean {
    const { lost, looks, invoked, releaseCalledAt, downgradedAt, lowered } = call;
    const calls = {
      release: releaseCalledAt,
      downgrade: downgradedAt,
      lower: lowered?.at,
    };
    const calledAt = calls[op] ?? at;
    const struckFrom = call.granted?.at ?? invoked.at;
    switch (code) {
      case 'LOCK_UNAVAILABLE':
        return this.#isStruck(call, calledAt, at);
      case 'LEASE_LOST':
        return lost !== undefined || looks.some(({ held }) => !held) || this.#isStruck(call, struckFrom, at);
      case 'LOCK_SHUTDOWN':
        return (this.#closings.get(invoked.process) ?? Infinity) <= at;
      default:
        return false;
    }
  }

  #isStruck({ invoked }: Call, from: number, to: number): boolean {
    return this.#struck.spansOf(invoked.process).touches(from, to);
  }

  #isOutOfTime({ invoked }: Call, at: number): boolean {
    // JSON has no Infinity.
    const { waitMs } = invoked as { waitMs?: number | null };
    if (waitMs === undefined || waitMs === null) return false;
    const suspends = this.#struck.faultsOf(invoked.process).filter(({ kind, from, to }) => {
      return kind.startsWith('suspend') && from <= at && to >= invoked.at;
    });
    return at - invoked.at >= waitMs - EARLY_MS - SUSPEND_MS * suspends.length;
  }

  /**
   * Returns true if its time was up before Redis could answer: it was short, or its turn in the process, or at the next
   * resource, arrived late.
   */
  #hadNoTime(call: Call, at: number): boolean {
    const { slowMs } = this.bounds;
    const { waitMs = Infinity, resources, process } = call.invoked;
    if (waitMs === 0 || !this.#isOutOfTime(call, at)) return false;
    if (waitMs < slowMs || resources.length > 1) return true;
    const turns = this.#turns.get(placeOf(process, resources[0]!))!;
    let [low, high] = [0, turns.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (turns[middle]! < at - slowMs) low = middle + 1;
      else high = middle;
    }
    // Not its own ending.
    return turns[low]! < at;
  }

  /** A grant that arrives after its lease has ended is no answer, and a short lease ends before an answer is slow. */
  #cameTooLate({ invoked }: Call, at: number): boolean {
    const { leaseMs, waitMs } = invoked;
    return waitMs === 0 && leaseMs < this.bounds.slowMs && at - invoked.at >= leaseMs * SAFE_SHARE;
  }

  /** Returns true if the lease that it was to enter, or to extend by a resource, had gone. */
  #isLost(call: Call, at: number): boolean {
    const { invoked, outer } = call;
    if (this.#isStruck(call, invoked.at, at) || brokenBy(this.history, invoked.at, at, invoked.leaseMs)) return true;
    return outer?.granted !== undefined && heldUntil(outer) <= at;
  }
}

function placeOf(process: string, resource: string): string {
  return `${process} ${resource}`;
}

function mayEnter(outer: Call, inner: Call): boolean {
  const [held, wanted] = [outer.invoked.mode, inner.invoked.mode];
  if (held === 'semaphore')
    return (outer.invoked.permits ?? 1) + (inner.invoked.permits ?? 1) <= (inner.invoked.total ?? 1);
  if (held === 'write') return wanted === 'write' || wanted === 'read';
  return held === wanted && (held === 'reentrant' || held === 'read');
}
