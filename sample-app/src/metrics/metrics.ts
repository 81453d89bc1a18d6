import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';

/** Asked by the route below. By itself it would listen on a port of its own, on every interface. */
export const exporter = new PrometheusExporter({ preventServerStart: true });

export const meterProvider = new MeterProvider({ readers: [exporter] });
