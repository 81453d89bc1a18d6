import type { TracerProvider } from '@opentelemetry/api';
import type { LockTelemetry } from '../../core/events/telemetry.js';
import { LockSpans } from './lock-spans.js';

/**
 * Makes spans of acquisitions, holds and runs of jobs.
 *
 * @param provider default: the one that is registered, also if that happens later
 * @param renewalSpans whether renewals are spans, too
 */
export function spanTelemetry(provider?: TracerProvider, renewalSpans = false): LockTelemetry {
  return { start: (source) => source.trace(new LockSpans(provider, renewalSpans)) };
}
