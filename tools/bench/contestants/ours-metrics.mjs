// Ours, with the metrics of OpenTelemetry on, collected more often than by default.
import { AggregationTemporality, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { openTelemetry } from '../../../dist/esm/telemetry.js';
import { connect as connectOurs } from './ours.mjs';

const EXPORT_EVERY_MS = 1_000;

/** Takes what is collected, and sends it nowhere. */
const exporter = {
  export: (metrics, done) => done({ code: 0 }),
  selectAggregationTemporality: () => AggregationTemporality.CUMULATIVE,
  forceFlush: async () => {},
  shutdown: async () => {},
};

/** @param {object} tuning options of `forRoot` */
export function connect(url, tuning = {}) {
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: EXPORT_EVERY_MS,
    exportTimeoutMillis: EXPORT_EVERY_MS,
  });
  const meterProvider = new MeterProvider({ readers: [reader] });
  return connectOurs(url, { telemetry: openTelemetry({ meterProvider, traces: false }), ...tuning });
}
