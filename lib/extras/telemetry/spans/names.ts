import { type SpanContext, TraceFlags } from '@opentelemetry/api';
import type { TracedLock } from '../../../kernel/events/lock-tracer.js';
import { escapeText } from '../../../kernel/util/quoted.js';
import { LockAttribute } from '../names.js';

/** The prefixes of span names. The group of the lock follows, or the name of the job. */
export enum LockSpan {
  /** From the call until the lock is granted or refused. */
  Acquire = 'acquire',
  /** From the grant until the lease is released or lost. The spans of the work under the lock are its children. */
  Hold = 'hold',
  /** A renewal of a lease, with a link to its hold. */
  Renew = 'renew',
  /** A run of a singleton job, in its own trace. */
  Tick = 'tick',
}

/** The events of an `acquire` span. */
export enum LockSpanEvent {
  /** The call begins to wait. */
  Queued = 'queued',
  Granted = 'granted',
}

/**
 * The attributes that only spans have. Their values can differ in each call, so they do not belong in a metric. Times
 * are in seconds.
 */
export enum LockSpanAttribute {
  /** The name of the resource. */
  Resource = 'lock.resource',
  FencingToken = 'lock.fencing_token',
  /** The time that the call waited. */
  WaitTime = 'lock.wait_time',
  /** The time for which the lease was held. */
  HoldTime = 'lock.hold_time',
  /** The number of requests to Redis for the call; 0 if it only waited behind other calls of its process. */
  Attempts = 'lock.attempts',
  /** The outcome of the call, the lease or the run. */
  Outcome = 'lock.outcome',
  /** The tick of a job. */
  Tick = 'lock.tick',
  /** `true` if an earlier run of the tick died. */
  Rerun = 'lock.rerun',
  /** The group of a holder that the call waited for, from the holder's label. */
  HolderGroup = 'lock.holder.group',
  /** The instance of that holder. */
  HolderInstance = 'lock.holder.instance',
  HolderFencingToken = 'lock.holder.fencing_token',
  /** The time that the call waited for this holder, as far as the process knows. */
  HolderWaitTime = 'lock.holder.wait_time',
}

/** Attributes of every span. */
export function attributesOf({ service, resource, mode, group }: TracedLock): Record<string, string> {
  return {
    [LockAttribute.Service]: escapeText(service),
    [LockAttribute.Group]: group,
    [LockAttribute.Mode]: mode,
    [LockSpanAttribute.Resource]: escapeText(resource),
  };
}

/** Version 00 of W3C Trace Context, in lower case, without ids of zeros only. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Formats the span context for other processes; `undefined` if its trace is not recorded. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string | undefined {
  return traceFlags & TraceFlags.SAMPLED ? `00-${traceId}-${spanId}-01` : undefined;
}

/**
 * Parses a span context of another process. Any other form is ignored, because every client of Redis can write there.
 */
export function parseTraceparent(text: unknown): SpanContext | undefined {
  if (typeof text !== 'string' || text.length !== 55) return undefined;
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags!, 16) & TraceFlags.SAMPLED, isRemote: true };
}
