import { renewedTooLate } from '../../../../lib/kernel/acquiring/acquire-errors.js';
import { grantedTooLate } from '../../../../lib/kernel/store/ask.js';
import { type Call, type Hold } from '../../history/call.js';
import type { Unanswered } from '../../history/entries.js';
import type { History } from '../../history/history.js';
import { answerMsOf } from '../../worker/settings.js';
import { BOUNDS, type Bounds, heartbeatMs } from '../bounds.js';
import { Findings, ms, quote, under } from '../findings.js';
import { endOf } from './liveness.js';
import { type Span, Spans } from '../spans.js';
import { Struck } from '../struck.js';
import type { Verdict } from '../violation.js';

/** Outcomes that mean "held by another call". `null` is from `tryAcquire`. */
const BUSY: readonly (string | null)[] = ['LOCK_TIMEOUT', 'LOCK_BUSY', null];
/** Allowance for late timers, on top of the time in which the process was stalled. */
const LATE_MS = 300;
/** The longest time between two probes of an inbox. One that is not answered shows that Redis is silent. */
const PROBED_MS = 1_750;
/** Messages for a reply that came too late for its lease: a short lease makes that likely. */
const LATE_FOR_LEASE = [grantedTooLate(), renewedTooLate()].map(({ message }) => message);

/**
 * The cause that ended the wait decides the error. If Redis was silent until the last attempt failed, it is an outage,
 * with its cause; if Redis replied, another call held the resource. In between, both are right.
 */
export function outcomes(history: History, bounds: Bounds = BOUNDS): Verdict {
  const findings = new Findings('outcomes');
  const waits = new Waits(history, bounds);
  for (const call of history.calls) {
    if (!call.refused) continue;
    const { at, code, why = '', hasCause } = call.refused;
    const { invoked } = call;
    const violate = (problem: string): void =>
      findings.violate(at, () => {
        return (
          `${invoked.process} (${invoked.call}, ${invoked.mode}, waitMs ${invoked.waitMs}) was refused ` +
          `${invoked.resources.map(quote).join(', ')} with ${code} (${why}) at ${ms(at)}, after ${ms(at - invoked.at)}: ${problem}, ` +
          `with ${under(history, invoked.at, at, invoked.leaseMs)}`
        );
      });
    if (BUSY.includes(code)) {
      findings.looked++;
      const outage = waits.outageThatEnded(call, at);
      if (outage) violate(`Redis had answered nothing since ${ms(outage.from)}, and that is not what it says`);
    } else if (code === 'LOCK_UNAVAILABLE') {
      findings.looked++;
      if (hasCause === false) violate('it does not say why Redis was unavailable');
      if (waits.wereAnswered(call, at)) violate('Redis answered all the time, and that is not what it says');
    }
  }
  return findings.verdict();
}

function isLateForLease(why = ''): boolean {
  return LATE_FOR_LEASE.some((message) => why.includes(message));
}

class Waits {
  readonly #struck: Struck;
  /** Faults long enough to hide all replies from a call, by its timeout in milliseconds. */
  readonly #silenced = new Map<number, Struck>();
  readonly #afterMs: number;
  /** The faults of one process, and its blockers. */
  readonly #own = new Map<string, Spans>();
  readonly #outages = new Map<string, Unanswered[]>();

  constructor(
    private readonly history: History,
    private readonly bounds: Bounds,
  ) {
    const leaseMs = history.calls.reduce((longest, { invoked }) => Math.max(longest, invoked.leaseMs), 0);
    // The next attempt comes after a pause, and is answered late.
    this.#afterMs = answerMsOf(leaseMs, bounds.answerMs) + leaseMs + bounds.slowMs;
    this.#struck = new Struck(history, { afterMs: this.#afterMs });
    for (const outage of history.of('unanswered')) {
      for (const victim of outage.victims) {
        this.#outages.set(victim, [...(this.#outages.get(victim) ?? []), outage]);
      }
    }
  }

  /** The outage that must have ended the call, because its process can't have had any reply. */
  outageThatEnded(call: Call, at: number): Span | undefined {
    const { invoked } = call;
    const outage = this.#outages.get(invoked.process)?.find((one) => one.from < at && at <= one.at);
    if (!outage) return undefined;
    if (invoked.waitMs === 0) return invoked.at >= outage.from ? { from: outage.from, to: outage.at } : undefined;
    const { leaseMs, process, resources } = invoked;
    // Until the next attempt, until that has failed, and until its timer has rung.
    const askedMs = Math.min(heartbeatMs(leaseMs), PROBED_MS);
    const patienceMs = askedMs + answerMsOf(leaseMs, this.bounds.answerMs) + LATE_MS;
    const from = outage.from + this.#stillMs(process, outage.from, at);
    if (at - from < patienceMs || resources.length > 1) return undefined;
    return this.#knewOtherwise(call, at - patienceMs, at) ? undefined : { from, to: outage.at };
  }

  /** Returns true if Redis replied to its process long enough for the call to notice. */
  wereAnswered({ invoked, refused }: Call, at: number): boolean {
    const { process, resources, leaseMs } = invoked;
    const { slowMs } = this.bounds;
    // JSON has no Infinity.
    const { waitMs } = invoked as { waitMs?: number | null };
    // One that has the first of several may have no time left for the next.
    if (resources.length > 1 || at - invoked.at < slowMs || !waitMs || waitMs < slowMs) return false;
    const answerMs = isLateForLease(refused?.why) ? Math.min(leaseMs, slowMs) : slowMs;
    return !this.#silencedFor(answerMs)
      .spansOf(process)
      .touches(Math.max(invoked.at, at - slowMs), at);
  }

  #silencedFor(answerMs: number): Struck {
    let silenced = this.#silenced.get(answerMs);
    if (!silenced) {
      const shortMs = answerMs / 4;
      silenced = new Struck(this.history, { afterMs: this.#afterMs, stallMs: shortMs, lateMs: shortMs });
      this.#silenced.set(answerMs, silenced);
    }
    return silenced;
  }

  /** Its own process may have had the resource; or another call of it, of another mode, has asked and given up since. */
  #knewOtherwise({ invoked }: Call, from: number, to: number): boolean {
    const [resource] = invoked.resources as [string];
    const isOwn = ({ process }: { readonly process: string }): boolean => process === invoked.process;
    const hadIt = ({ from: since, to: until, ...hold }: Hold): boolean => isOwn(hold) && since <= to && until >= from;
    if (this.history.holdsByResource.get(resource)?.some(hadIt)) return true;
    return this.history.callsByResource.get(resource)!.some((other) => {
      const { mode, permits, total, resources } = other.invoked;
      const isSame =
        mode === invoked.mode && permits === invoked.permits && total === invoked.total && resources.length === 1;
      return isOwn(other.invoked) && !isSame && other.invoked.at <= to && endOf(other, this.history) >= from;
    });
  }

  /** Time for which the process was stalled. */
  #stillMs(process: string, from: number, to: number): number {
    let own = this.#own.get(process);
    if (!own) {
      own = new Spans([...this.#struck.faultsOf(process), ...this.#struck.stallsOf(process)]);
      this.#own.set(process, own);
    }
    return own.coveredMs(from, to);
  }
}
