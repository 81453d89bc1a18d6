/**
 * Metrics and traces of the locks, by OpenTelemetry. Needs `@opentelemetry/api`.
 *
 * @module nestjs-redis-lock/telemetry
 */
export { openTelemetry, type OpenTelemetryOptions } from './telemetry/open-telemetry/open-telemetry.js';
export {
  LOCK_METRIC_BUCKETS,
  LOCK_METRICS,
  LockAttribute,
  LockMetric,
  type LockMetricDefinition,
  type LockMetricKind,
  prometheusNameOf,
} from './telemetry/names.js';
export { LockSpan, LockSpanAttribute, LockSpanEvent } from './telemetry/spans/names.js';
