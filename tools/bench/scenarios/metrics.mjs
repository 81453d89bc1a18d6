import { contestant, OURS } from '../contestants/index.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

const OBSERVED = 'ours-metrics';

export const scenario = {
  name: 'metrics',
  title: 'What metrics cost',
  meaning: 'What a lock costs that is measured: three counts and two histograms for each lease.',
  how:
    'As `uncontended-1`. Beside ours, ours with `telemetry: openTelemetry({ traces: false })`, the SDK of OpenTelemetry, and a reader that collects ' +
    'once a second.',
  metrics: throughputMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  targets: [
    {
      text: 'leases/s with metrics, of those without',
      of: (values) => values[OBSERVED]?.leasesPerSecond / values[OURS]?.leasesPerSecond,
      atLeast: 0.97,
    },
  ],
  run: (bench) => runThroughput(bench, 'metrics', { callers: 1 }, [contestant(OURS), contestant(OBSERVED)]),
};
