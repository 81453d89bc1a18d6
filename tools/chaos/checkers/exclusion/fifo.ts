import { type Call, heldUntil, reenters } from '../../history/call.js';
import type { QueueSeen } from '../../history/entries.js';
import type { History } from '../../history/history.js';
import { Findings, ms, quote, under } from '../findings.js';
import { type Span, Spans } from '../spans.js';
import { Struck } from '../struck.js';
import type { Verdict } from '../violation.js';

/** Tokens of one tick: the first one is given by Redis, the others inside the process. */
const TOKENS_PER_TICK = 64;

/** A lease that a process got by its place in the queue, and when that began to be known and to be over. */
interface Turn {
  readonly call: Call;
  readonly token: number;
  readonly at: number;
  /** It was still held then, as far as is known. */
  readonly until: number;
}

/**
 * Redis serves its queue in order. A waiter that was seen before another one gets its next turn with the smaller tick,
 * even if both may hold the resource together: the script that grants it to several gives them ticks in the order of
 * the queue.
 *
 * Nothing is promised to a waiter that was hit by a fault, gave up (it leaves the queue and returns at its end) or just
 * started.
 */
export function fifo(history: History): Verdict {
  const findings = new Findings('fifo');
  const seen = history.of('queue');
  const disturbances = new Disturbances(history);
  const turns = new Map<string, ReadonlyMap<string, Turns>>();
  for (const [resource, calls] of history.callsByResource) turns.set(resource, turnsOf(resource, calls));
  for (const sample of seen) check(history, sample, turns.get(sample.resource), disturbances, findings);
  return findings.verdict();
}

/** The turns of one process, by their tokens; and when each one and all before it were over. */
interface Turns {
  readonly list: readonly Turn[];
  readonly allEndedAt: readonly number[];
}

function turnsOf(resource: string, calls: readonly Call[]): Map<string, Turns> {
  const turns = new Map<string, Turn[]>();
  for (const call of calls) {
    const { invoked, granted } = call;
    const token = granted?.tokens.get(resource);
    if (!granted || token === undefined || !invoked.queues || reenters(call)) continue;
    // Handed over in memory: that took no place in the queue.
    if (token % TOKENS_PER_TICK !== 0) continue;
    const turn = { call, token, at: granted.at, until: heldUntil(call) };
    const list = turns.get(invoked.process);
    if (list) list.push(turn);
    else turns.set(invoked.process, [turn]);
  }
  return new Map([...turns].map(([process, list]) => [process, inOrder(list)]));
}

function inOrder(turns: readonly Turn[]): Turns {
  const list = turns.toSorted((a, b) => a.token - b.token);
  let latest = -Infinity;
  return { list, allEndedAt: list.map(({ until }) => (latest = Math.max(latest, until))) };
}

function check(
  history: History,
  sample: QueueSeen,
  turns: ReadonlyMap<string, Turns> | undefined,
  disturbances: Disturbances,
  findings: Findings,
): void {
  const { resource, waiters } = sample;
  if (!turns || waiters.length < 2) return;
  const held = new Set(sample.holders.map(({ token }) => token));
  // Seen twice: one of its places is left over from a call that has ended.
  const places = waiters.filter((process) => waiters.indexOf(process) === waiters.lastIndexOf(process));
  const nexts = places.map((process) => ({
    process,
    next: nextTurn(turns.get(process), held, sample),
    liveUntil: disturbances.firstAfter(process, resource, sample.from),
  }));
  for (const [place, later] of nexts.entries()) {
    if (!later.next) continue;
    for (const earlier of nexts.slice(0, place)) {
      if (!earlier.next || later.next.at >= earlier.liveUntil) continue;
      findings.looked++;
      if (earlier.next.token < later.next.token) continue;
      const [first, second] = [earlier.next, later.next];
      findings.violate(second.at, () => {
        return (
          `${later.process} (${second.call.invoked.call}, token ${second.token}) got ${quote(resource)} at ${ms(second.at)} before ` +
          `${earlier.process} (${first.call.invoked.call}, token ${first.token}, at ${ms(first.at)}), which stood before it in the ` +
          `queue at ${ms(sample.from)}, with ${under(history, sample.from, second.at, second.call.invoked.leaseMs)}`
        );
      });
    }
  }
}

/**
 * Returns the first turn that was granted after the queue was seen: held after that, and not by a holder of that
 * moment. Undefined if that is uncertain: a turn that ended at that moment may have been granted before or after.
 */
function nextTurn(turns: Turns | undefined, held: ReadonlySet<number>, { from, at }: QueueSeen): Turn | undefined {
  if (!turns) return undefined;
  let [low, high] = [0, turns.list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (turns.allEndedAt[middle]! < from) low = middle + 1;
    else high = middle;
  }
  for (; low < turns.list.length; low++) {
    const turn = turns.list[low]!;
    if (held.has(turn.token) || turn.until < from) continue;
    return turn.until > at ? turn : undefined;
  }
  return undefined;
}

/** When nothing is promised to a process that waits for a resource. */
class Disturbances {
  readonly #struck: Struck;
  readonly #lives = new Map<string, Span[]>();
  readonly #byPlace = new Map<string, Map<string, Spans>>();
  readonly #leaseMs: number;
  readonly #shortestMs: number;

  constructor(private readonly history: History) {
    const leaseMs = history.calls.reduce((longest, { invoked }) => Math.max(longest, invoked.leaseMs), 0);
    const shortest = history.calls.reduce((least, { invoked }) => Math.min(least, invoked.leaseMs), Infinity);
    this.#leaseMs = leaseMs;
    this.#shortestMs = shortest;
    // A place lasts for a lease, and was renewed less than half a lease before: a shorter standstill does not cost it alone.
    this.#struck = new Struck(history, { afterMs: leaseMs, stallMs: shortest / 3 });
    for (const { type, process, victim, at } of history.of('started', 'closing', 'died')) {
      const name = victim ?? process;
      const spans = this.#lives.get(name) ?? [];
      if (type === 'started') spans.push({ from: -Infinity, to: at + leaseMs });
      else spans.push({ from: at, to: Infinity });
      this.#lives.set(name, spans);
    }
  }

  /** The first moment of a disturbance; before `from` where one lasts. */
  firstAfter(process: string, resource: string, from: number): number {
    let ofProcess = this.#byPlace.get(resource);
    if (!ofProcess) this.#byPlace.set(resource, (ofProcess = this.#collect(resource)));
    return ofProcess.get(process)?.firstFrom(from)?.from ?? Infinity;
  }

  /**
   * Shorter blockers of the process, and of the harness, which is its network, that add up to half of a lease within a
   * lease. A place is kept after a third of a lease and a quarter more of that, so together they may cost it.
   */
  #addedUp(process: string): Span[] {
    const stalls = this.history.of('stall').filter((stall) => stall.process === process || stall.process === 'chaos');
    stalls.sort((a, b) => a.from - b.from);
    const found: Span[] = [];
    for (const [index, { from }] of stalls.entries()) {
      let sumMs = 0;
      let until = -Infinity;
      for (let next = index; next < stalls.length && stalls[next]!.from < from + this.#shortestMs; next++) {
        const stall = stalls[next]!;
        // If the whole machine was paused, both report it.
        sumMs += Math.max(0, stall.at - Math.max(stall.from, until));
        until = Math.max(until, stall.at);
        if (sumMs < this.#shortestMs / 2) continue;
        // Not before the last of them does a place end.
        found.push({ from: stall.from, to: stall.at });
        break;
      }
    }
    return found;
  }

  #collect(resource: string): Map<string, Spans> {
    const spans = new Map<string, Span[]>();
    for (const { invoked, granted, refused } of this.history.callsByResource.get(resource) ?? []) {
      const { process, queues, at } = invoked;
      let own = spans.get(process);
      if (!own) {
        own = [
          ...this.#struck.spansOf(process).list,
          ...(this.#lives.get(process) ?? []),
          ...this.#addedUp(process).map(({ from, to }) => ({ from, to: to + this.#leaseMs })),
        ];
        spans.set(process, own);
      }
      if (queues && !granted) own.push({ from: at, to: (refused?.at ?? Infinity) + this.#leaseMs });
    }
    return new Map([...spans].map(([process, list]) => [process, new Spans(list)]));
  }
}
