/**
 * Metrics and traces of the locks, by OpenTelemetry, and the types for a telemetry of your own. The functions need
 * `@opentelemetry/api`.
 *
 * @module nestjs-redis-lock/telemetry
 */

// OpenTelemetry
export { openTelemetry, type OpenTelemetryOptions } from './extras/telemetry/open-telemetry/open-telemetry.js';
export {
  LOCK_METRIC_BUCKETS,
  LOCK_METRICS,
  LockAttribute,
  LockMetric,
  prometheusNameOf,
} from './extras/telemetry/names.js';
export { LockSpan, LockSpanAttribute, LockSpanEvent } from './extras/telemetry/spans/names.js';

// The module option telemetry
export type { LockStats, LockTelemetry, LockTelemetrySource } from './kernel/events/telemetry.js';
export type {
  CallTrace,
  HoldTrace,
  LockTracer,
  RenewalTrace,
  RunTrace,
  TracedEnd,
  TracedGrant,
  TracedLock,
  TracedRun,
} from './kernel/events/lock-tracer.js';
