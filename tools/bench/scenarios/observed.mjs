// What it costs to be observed: ours beside ours with metrics, or with traces.
import { contestant, OURS } from '../contestants/index.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

const ofPlain = (name) => (values) => values[name]?.leasesPerSecond / values[OURS]?.leasesPerSecond;

export const observed = [
  {
    name: 'metrics',
    title: 'What metrics cost',
    how:
      'As `uncontended-1`. Beside ours, ours with `telemetry: openTelemetry({ traces: false })`, the SDK of OpenTelemetry, and a ' +
      'reader that collects once a second.',
    targets: [{ text: 'leases/s with metrics, of those without', of: ofPlain('ours-metrics'), atLeast: 0.97 }],
  },
  {
    name: 'traces',
    title: 'What traces cost',
    how:
      'As `uncontended-1`. Beside ours, ours with `telemetry: openTelemetry({ metrics: false })` and the SDK of OpenTelemetry, which ' +
      'records every span and exports it in batches, to nowhere. There is no target: it is what recording costs.',
    targets: [],
  },
].map((one) => ({
  ...one,
  metrics: throughputMetrics,
  run: (bench) => runThroughput(bench, one.name, { callers: 1 }, [OURS, `ours-${one.name}`].map(contestant)),
}));
