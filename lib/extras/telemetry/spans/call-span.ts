import { context, type Context, type Span, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { LockError } from '../../../kernel/api/errors.js';
import { groupNamed } from '../../../kernel/api/resource.js';
import type { Holder } from '../../../kernel/api/holder.js';
import type {
  CallTrace,
  HoldTrace,
  RenewalTrace,
  TracedEnd,
  TracedGrant,
  TracedLock,
} from '../../../kernel/events/lock-tracer.js';
import { type AcquireOutcome, outcomeOfError } from '../../../kernel/events/events.js';
import { describeThrown, escapeText } from '../../../kernel/util/quoted.js';
import { LockAttribute } from '../names.js';
import {
  attributesOf,
  formatTraceparent,
  LockSpan,
  LockSpanAttribute,
  LockSpanEvent,
  parseTraceparent,
} from './names.js';

/** A refusal that the caller asked for is no failure: `tryAcquire`, an aborted signal. */
const NO_FAILURE: readonly AcquireOutcome[] = ['busy', 'aborted', 'shutdown'];

/** Begins the span of a call. @returns nothing if the trace is not recorded, and its context needs no help */
export function beginCall(tracer: Tracer, lock: TracedLock): CallTrace | undefined {
  const outer = context.active();
  const span = tracer.startSpan(`${LockSpan.Acquire} ${lock.group}`, { attributes: attributesOf(lock) }, outer);
  if (span.isRecording()) return new CallSpan(tracer, span, lock, outer);
  // Without a span around it, the work must know that its trace is not recorded.
  return trace.getSpan(outer) || !trace.isSpanContextValid(span.spanContext()) ? undefined : unrecorded(span);
}

/** The span of a call to acquire. */
class CallSpan implements CallTrace {
  #blockers: WaitedFor | undefined;

  constructor(
    private readonly tracer: Tracer,
    private readonly span: Span,
    private readonly lock: TracedLock,
    private readonly outer: Context,
  ) {}

  get traceparent(): string | undefined {
    return formatTraceparent(this.span.spanContext());
  }

  run<T>(ask: () => T): T {
    return context.with(trace.setSpan(this.outer, this.span), ask);
  }

  waits(holders: readonly Holder[], waitedMs: number): void {
    if (this.#blockers === undefined) {
      this.#blockers = new WaitedFor();
      this.span.addEvent(LockSpanEvent.Queued, holders[0] && holderAttributes(holders[0]));
    }
    this.#blockers.see(holders, waitedMs);
  }

  granted({ fencingToken, waitedMs, attempts }: TracedGrant): HoldTrace {
    const { span, lock } = this;
    span.addEvent(LockSpanEvent.Granted, { [LockSpanAttribute.FencingToken]: fencingToken });
    span.setAttributes({
      [LockSpanAttribute.FencingToken]: fencingToken,
      [LockSpanAttribute.Attempts]: attempts,
    });
    this.#end('acquired', waitedMs);
    return beginHold(this.tracer, lock, fencingToken, trace.getSpan(this.outer) ? this.outer : withSpan(span));
  }

  failed(error: unknown, waitedMs: number): void {
    const outcome = outcomeOfError(error);
    const { attempts, holders } = (error ?? {}) as { attempts?: unknown; holders?: unknown };
    if (typeof attempts === 'number') this.span.setAttribute(LockSpanAttribute.Attempts, attempts);
    if (Array.isArray(holders) && holders.length > 0) {
      this.#blockers ??= new WaitedFor();
      this.#blockers.see(holders as Holder[], waitedMs);
    }
    if (!NO_FAILURE.includes(outcome)) setError(this.span, error);
    this.#end(outcome, waitedMs);
  }

  #end(outcome: AcquireOutcome, waitedMs: number): void {
    const { span } = this;
    span.setAttributes({
      [LockSpanAttribute.WaitTime]: seconds(waitedMs),
      [LockSpanAttribute.Outcome]: outcome,
    });
    const blockers = this.#blockers?.end(waitedMs) ?? [];
    if (blockers[0]) span.setAttributes(holderAttributes(blockers[0].holder, blockers[0].waitedMs));
    for (const { holder, waitedMs: waitedForMs } of blockers) {
      const linked = parseTraceparent(labelOf(holder).traceparent);
      if (linked) span.addLink({ context: linked, attributes: holderAttributes(holder, waitedForMs) });
    }
    span.end();
  }
}

export function beginHold(tracer: Tracer, lock: TracedLock, fencingToken: number, parent: Context): HoldSpan {
  const attributes = { ...attributesOf(lock), [LockSpanAttribute.FencingToken]: fencingToken };
  const span = tracer.startSpan(`${LockSpan.Hold} ${lock.group}`, { attributes }, parent);
  return new HoldSpan(tracer, span, lock, fencingToken);
}

const LEAKED = 'The lease was not released, and no code references it any longer.';

/** The span of a lease: the parent of the work under it. */
class HoldSpan implements HoldTrace {
  constructor(
    private readonly tracer: Tracer,
    private readonly span: Span,
    private readonly lock: TracedLock,
    private readonly fencingToken: number,
  ) {}

  run<T>(work: () => T): T {
    return context.with(withSpan(this.span), work);
  }

  /** Starts a new root if the watchdog renews, because that happens long after the caller got its reply. */
  renews(by: 'watchdog' | 'extend'): RenewalTrace | undefined {
    const { tracer, span, lock, fencingToken } = this;
    const renewal = tracer.startSpan(`${LockSpan.Renew} ${lock.group}`, {
      root: by === 'watchdog',
      attributes: { ...attributesOf(lock), [LockSpanAttribute.FencingToken]: fencingToken },
      links: [{ context: span.spanContext() }],
    });
    return new RenewalSpan(renewal);
  }

  ended({ outcome, heldMs, error }: TracedEnd): void {
    this.span.setAttributes({
      [LockSpanAttribute.HoldTime]: seconds(heldMs),
      [LockSpanAttribute.Outcome]: outcome,
    });
    if (error !== undefined) setError(this.span, error);
    else if (outcome === 'leaked') this.span.setStatus({ code: SpanStatusCode.ERROR, message: LEAKED });
    this.span.end();
  }
}

/** The span of a renewal. If it is not recorded, its command is not recorded either. */
class RenewalSpan implements RenewalTrace {
  constructor(private readonly span: Span) {}

  run<T>(ask: () => T): T {
    return context.with(withSpan(this.span), ask);
  }

  ended(outcome: 'renewed' | 'lost' | 'failed', error: unknown): void {
    this.span.setAttribute(LockSpanAttribute.Outcome, outcome);
    if (error !== undefined) setError(this.span, error);
    this.span.end();
  }
}

/**
 * Returns the caller's async context with this span as the active one. Everything else in it stays, such as baggage.
 */
export function withSpan(span: Span): Context {
  return trace.setSpan(context.active(), span);
}

export function seconds(ms: number): number {
  return Math.round(ms * 1_000) / 1_000_000;
}

/** Marks the span as failed. The message of one of our errors names the resource, and no secret. */
export function setError(span: Span, error: unknown): void {
  span.setAttribute(LockAttribute.ErrorType, errorType(error));
  span.setStatus({ code: SpanStatusCode.ERROR, ...(error instanceof Error && { message: describeThrown(error) }) });
}

/** Returns the code of our errors and the class of others: few values, as the conventions of OpenTelemetry ask for. */
function errorType(error: unknown): string {
  if (error instanceof LockError) return error.code;
  return error instanceof Error ? error.name : '_OTHER';
}

/** Keeps spans below an unrecorded root from being recorded as new roots. */
function unrecorded(span: Span): CallTrace {
  const run = <T>(work: () => T): T => context.with(withSpan(span), work);
  const hold: HoldTrace = { run, ended() {} };
  return { traceparent: undefined, run, waits() {}, granted: () => hold, failed() {} };
}

function holderAttributes(holder: Holder, waitedMs?: number) {
  const { instanceId, fencingToken } = holder;
  const { group } = labelOf(holder);
  return {
    [LockSpanAttribute.HolderInstance]: escapeText(instanceId),
    [LockSpanAttribute.HolderFencingToken]: fencingToken,
    ...(typeof group === 'string' && { [LockSpanAttribute.HolderGroup]: groupNamed(group) }),
    ...(waitedMs !== undefined && { [LockSpanAttribute.HolderWaitTime]: seconds(waitedMs) }),
  };
}

/** Checked, because any client of the Redis can have written it. */
function labelOf(holder: Holder): Readonly<Record<string, unknown>> {
  return (holder as { label?: Readonly<Record<string, unknown>> }).label ?? {};
}

/** The maximum of holders that a span names. A long wait may have seen thousands. */
const MOST = 8;
/** The holders to remember, to choose from. */
const REMEMBERED = 32;

/** A holder that a call has waited for, and for how long. */
export interface Awaited {
  readonly holder: Holder;
  readonly waitedMs: number;
}

/**
 * The holders for which a call has waited. Sends nothing: it uses the replies that name a holder, and how long that one
 * has had the lock.
 */
export class WaitedFor {
  readonly #waitedMs = new Map<string, { holder: Holder; waitedMs: number }>();
  #last: readonly string[] = [];
  #lastAt = 0;

  /** @param holders the holders now @param now how long ago the call began, in milliseconds */
  see(holders: readonly Holder[], now: number): void {
    if (holders.length === 0) return;
    const keys = holders.slice(0, MOST).map(keyOf);
    // Before that, the previous holders had it.
    const began = Math.min(now, Math.max(this.#lastAt, now - longestOf(holders)));
    this.#charge(began);
    for (const [index, key] of keys.entries()) this.#remember(key, holders[index]!, now - began);
    this.#last = keys;
    this.#lastAt = now;
  }

  /** @returns the holders that the call has waited for, the longest wait first */
  end(now: number): readonly Awaited[] {
    this.#charge(now);
    return [...this.#waitedMs.values()].sort((a, b) => b.waitedMs - a.waitedMs).slice(0, MOST);
  }

  #charge(until: number): void {
    const waitedMs = Math.max(0, until - this.#lastAt);
    for (const key of this.#last) {
      const known = this.#waitedMs.get(key);
      if (known) known.waitedMs += waitedMs;
    }
  }

  #remember(key: string, holder: Holder, waitedMs: number): void {
    const known = this.#waitedMs.get(key);
    if (known) {
      known.waitedMs += waitedMs;
      known.holder = holder;
      return;
    }
    this.#waitedMs.set(key, { holder, waitedMs });
    if (this.#waitedMs.size <= REMEMBERED) return;
    const [shortest] = [...this.#waitedMs]
      .filter(([each]) => each !== key)
      .sort(([, a], [, b]) => a.waitedMs - b.waitedMs);
    this.#waitedMs.delete(shortest![0]);
  }
}

function longestOf(holders: readonly Holder[]): number {
  return holders.reduce((longest, { heldMs }) => (heldMs > longest ? heldMs : longest), 0);
}

/** Leases that a process passes on in memory have tokens of their own. */
function keyOf({ instanceId, fencingToken }: Holder): string {
  return `${fencingToken} ${instanceId}`;
}
