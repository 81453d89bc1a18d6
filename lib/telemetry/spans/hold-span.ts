import { context, type Context, type Span, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';
import { LockError } from '../../core/api/errors.js';
import type { HoldTrace, RenewalTrace, TracedEnd, TracedLock } from '../../core/events/lock-tracer.js';
import { describeThrown } from '../../core/util/quoted.js';
import { LockAttribute } from '../names.js';
import { attributesOf, LockSpan, LockSpanAttribute } from './names.js';

const LEAKED = 'The lease was not released, and no code refers to it any longer.';

/** The span of a lease: the parent of the work under it. */
export class HoldSpan implements HoldTrace {
  constructor(
    private readonly tracer: Tracer,
    private readonly span: Span,
    private readonly lock: TracedLock,
    private readonly fencingToken: number,
  ) {}

  run<T>(work: () => T): T {
    return context.with(withSpan(this.span), work);
  }

  /** A new root if the watchdog renews: it goes on when the caller has long got its answer. */
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

/** The span of a renewal. Where it is not recorded, its command is not recorded either. */
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

/** The async context of the caller, with this span as the active one. What else is in it stays, such as baggage. */
export function withSpan(span: Span): Context {
  return trace.setSpan(context.active(), span);
}

export function seconds(ms: number): number {
  return Math.round(ms * 1_000) / 1_000_000;
}

/** The span has failed. The message of one of our errors names the resource, and no secret. */
export function setError(span: Span, error: unknown): void {
  span.setAttribute(LockAttribute.ErrorType, errorType(error));
  span.setStatus({ code: SpanStatusCode.ERROR, ...(error instanceof Error && { message: describeThrown(error) }) });
}

/** The code of our errors, the class of others: few values, as the conventions of OpenTelemetry ask for. */
function errorType(error: unknown): string {
  if (error instanceof LockError) return error.code;
  return error instanceof Error ? error.name : '_OTHER';
}
