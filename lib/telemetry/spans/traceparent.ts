import { type SpanContext, TraceFlags } from '@opentelemetry/api';

/** Version 00 of W3C Trace Context, in lower case, without ids of zeros only. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The span as other processes name it; `undefined` where its trace is not recorded. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string | undefined {
  return traceFlags & TraceFlags.SAMPLED ? `00-${traceId}-${spanId}-01` : undefined;
}

/** Reads what another process has written. Any other form is ignored: every client of Redis can write there. */
export function parseTraceparent(text: unknown): SpanContext | undefined {
  if (typeof text !== 'string' || text.length !== 55) return undefined;
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags!, 16) & TraceFlags.SAMPLED, isRemote: true };
}
