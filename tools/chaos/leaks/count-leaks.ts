import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { runTypescript } from '../../../test/support/process/run-typescript.js';
import { type Census, grownIn } from './census.js';

/** A leak that is made on purpose, to see that it is found. */
export const LEAKS = [
  'signal listener',
  'client listener',
  'process listener',
  'key',
  'subscription',
  'memory',
  'timer',
  'connection',
] as const;
export type Leak = (typeof LEAKS)[number];

/** The counts of the process. */
export interface LeakReport {
  /** The leases acquired and ended between the two counts. */
  cycles: number;
  /** The rounds of each mode. */
  modes: Record<string, number>;
  before: Census;
  after: Census;
  heapBefore: number;
  heapAfter: number;
}

export interface LeakCount extends LeakReport {
  /** Growth of the heap, as a part of what it was. */
  heapGrowth: number;
  /** From the end of app.close() to the end of the process. */
  endedAfterMs: number;
  /** Counts that have grown; empty without leaks. */
  violations: string[];
}

/** A short run begins before the process has warmed up. */
const HEAP_MAY_GROW = { short: 0.1, long: 0.05 };
const LONG = 50_000;

/** Uses locks in every mode, so many leases in all, and counts what is left of it. */
export async function countLeaks({
  cycles,
  leaks = [],
}: {
  cycles: number;
  leaks?: readonly Leak[];
}): Promise<LeakCount> {
  await using server = await startRedisServer();
  const main = new URL('leak-process-main.ts', import.meta.url);
  const { code, stdout, stderr, endedAfterMs } = await runTypescript(
    main,
    [server.url, cycles, ...leaks],
    ['--expose-gc'],
  );
  if (stdout === '') throw new Error(`The process ended with ${code}:\n${stderr}`);
  const report = JSON.parse(stdout) as LeakReport;
  const heapGrowth = report.heapAfter / report.heapBefore - 1;
  const violations = grownIn(report.after, report.before);
  if (heapGrowth > (cycles < LONG ? HEAP_MAY_GROW.short : HEAP_MAY_GROW.long))
    violations.push(`heap: ${(heapGrowth * 100).toFixed(1)} % more than before`);
  if (code !== 0) violations.push('the process did not end by itself');
  if (stderr !== '') violations.push(`stderr: ${stderr}`);
  return { ...report, heapGrowth, endedAfterMs, violations };
}
