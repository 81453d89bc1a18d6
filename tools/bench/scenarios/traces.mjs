import { contestant, OURS } from '../contestants/index.mjs';
import { runThroughput, throughputMetrics } from './throughput.mjs';

const OBSERVED = 'ours-traces';

export const scenario = {
  name: 'traces',
  title: 'What traces cost',
  meaning: 'What a lock costs that is traced: two spans for each lease, and a label with the trace in Redis.',
  how:
    'As `uncontended-1`. Beside ours, ours with `telemetry: openTelemetry({ metrics: false })` and the SDK of OpenTelemetry, which ' +
    'records every span and exports it in batches, to nowhere. There is no target: it is what recording costs.',
  metrics: throughputMetrics,
  chart: { metric: 'leasesPerSecond', unit: 'leases/s' },
  targets: [],
  run: (bench) => runThroughput(bench, 'traces', { callers: 1 }, [contestant(OURS), contestant(OBSERVED)]),
};
