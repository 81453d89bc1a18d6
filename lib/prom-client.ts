/**
 * Metrics of the locks, by prom-client. Needs `prom-client`.
 *
 * @module nestjs-redis-lock/prom-client
 */
export { lockMetrics } from './extras/telemetry/prom-client/lock-metrics.js';
export {
  LOCK_METRIC_BUCKETS,
  LOCK_METRICS,
  LockAttribute,
  LockMetric,
  prometheusNameOf,
} from './extras/telemetry/names.js';
