import type { TracerProvider } from '@opentelemetry/api';
import type { LockTelemetry } from '../../core/events/telemetry.js';
import { LockSpans } from './lock-spans.js';

/**
 * Makes spans of acquisitions, holds and runs of jobs.
 *
 * @param provider default: the one that is registered, also if that happens later
 */
export function spanTelemetry(provider?: TracerProvider): LockTelemetry {
  return { start: (source) => source.trace(new LockSpans(provider)) };
}
