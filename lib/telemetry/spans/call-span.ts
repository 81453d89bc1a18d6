import { context, type Context, type Link, type Span, type Tracer, trace } from '@opentelemetry/api';
import { groupNamed } from '../../core/api/resource.js';
import type { Holder } from '../../core/api/holder.js';
import type { CallTrace, HoldTrace, TracedGrant, TracedLock } from '../../core/events/lock-tracer.js';
import { type AcquireOutcome, outcomeOfError } from '../../core/events/outcomes.js';
import { escapeText } from '../../core/util/quoted.js';
import { WaitedFor } from './waited-for.js';
import { HoldSpan, seconds, setError, withSpan } from './hold-span.js';
import { LockSpan, LockSpanAttribute, LockSpanEvent } from './names.js';
import { attributesOf } from './attributes.js';
import { formatTraceparent, parseTraceparent } from './traceparent.js';

/** A call that was refused as the caller asked for has not failed: `tryAcquire`, an aborted signal. */
const NO_FAILURE: readonly AcquireOutcome[] = ['busy', 'aborted', 'shutdown'];

/** Begins the span of a call. @returns nothing where the trace is not recorded, and needs no help to go on */
export function beginCall(
  tracer: Tracer,
  name: LockSpan.Acquire | LockSpan.Adopt,
  lock: TracedLock,
  links: Link[] = [],
): CallTrace | undefined {
  const outer = context.active();
  const span = tracer.startSpan(`${name} ${lock.group}`, { attributes: attributesOf(lock), links }, outer);
  if (span.isRecording()) return new CallSpan(tracer, span, lock, outer);
  // Without a span around it, the work has to know that its trace is not recorded.
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

/** Begins the span of a lease. */
export function beginHold(tracer: Tracer, lock: TracedLock, fencingToken: number, parent: Context): HoldSpan {
  const attributes = { ...attributesOf(lock), [LockSpanAttribute.FencingToken]: fencingToken };
  const span = tracer.startSpan(`${LockSpan.Hold} ${lock.group}`, { attributes }, parent);
  return new HoldSpan(tracer, span, lock, fencingToken);
}

/** What is below a root that is not recorded is not recorded either. */
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

/** Any client of the Redis can have written it. */
function labelOf(holder: Holder): Readonly<Record<string, unknown>> {
  return (holder as { label?: Readonly<Record<string, unknown>> }).label ?? {};
}
