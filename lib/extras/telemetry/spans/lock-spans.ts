import {
  context,
  type Link,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import type {
  CallTrace,
  HoldTrace,
  LockTracer,
  RunTrace,
  TracedGrant,
  TracedLock,
  TracedRun,
} from '../../../kernel/events/lock-tracer.js';
import { escapeText } from '../../../kernel/util/quoted.js';
import { LockAttribute } from '../names.js';
import { attributesOf, LockSpan, LockSpanAttribute } from './names.js';
import { beginCall, beginHold, setError, withSpan } from './call-span.js';

const TRACER_NAME = 'nestjs-redis-lock';

/**
 * Makes the spans of the locks of one process. All of them are of kind INTERNAL: an acquisition is not one request to a
 * server. It may send no command, or many, and each of those is a span of kind CLIENT.
 */
export class LockSpans implements LockTracer {
  #tracer: Tracer | undefined;

  constructor(
    private readonly provider?: TracerProvider,
    readonly followsRenewals = false,
  ) {}

  isOff(): boolean {
    if (this.#tracer) return false;
    const provider = this.provider ?? trace.getTracerProvider();
    const hasSdk = !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(TRACER_NAME) !== undefined;
    if (hasSdk) this.#tracer = provider.getTracer(TRACER_NAME);
    return !hasSdk;
  }

  acquire(lock: TracedLock): CallTrace | undefined {
    return this.#tracer && beginCall(this.#tracer, lock);
  }

  /** Starts a new root: a job that runs for hours does not belong to the trace of its caller. */
  tick(lock: TracedLock, { job, tick, rerun }: TracedRun): RunTrace | undefined {
    if (!this.#tracer) return undefined;
    const caller = trace.getSpanContext(context.active());
    const links: Link[] = caller && trace.isSpanContextValid(caller) ? [{ context: caller }] : [];
    const name = escapeText(job);
    const attributes = {
      ...attributesOf(lock),
      [LockAttribute.Job]: name,
      [LockSpanAttribute.Tick]: escapeText(tick),
      [LockSpanAttribute.Rerun]: rerun,
    };
    const span = this.#tracer.startSpan(`${LockSpan.Tick} ${name}`, { root: true, attributes, links }, ROOT_CONTEXT);
    if (!trace.isSpanContextValid(span.spanContext())) return undefined;
    return new RunSpan(this.#tracer, span, lock);
  }
}

/** The span of a run of a job. If it is not recorded, nothing below it is recorded either. */
class RunSpan implements RunTrace {
  constructor(
    private readonly tracer: Tracer,
    private readonly span: Span,
    private readonly lock: TracedLock,
  ) {}

  run<T>(work: () => T): T {
    return context.with(withSpan(this.span), work);
  }

  held({ fencingToken }: TracedGrant): HoldTrace {
    return beginHold(this.tracer, this.lock, fencingToken, withSpan(this.span));
  }

  ended(error: unknown): void {
    this.span.setAttribute(LockSpanAttribute.Outcome, error === undefined ? 'ok' : 'error');
    if (error !== undefined) setError(this.span, error);
    this.span.end();
  }
}
