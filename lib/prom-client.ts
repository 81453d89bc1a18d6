/**
 * Metrics of the locks, by prom-client. Needs `prom-client`.
 *
 * @module nestjs-redis-lock/prom-client
 */
export { lockMetrics } from './telemetry/prom-client/lock-metrics.js';
export { LOCK_METRIC_BUCKETS, LOCK_METRICS, LockAttribute, LockMetric, prometheusNameOf } from './telemetry/names.js';
