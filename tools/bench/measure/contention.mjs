// One run of many callers in several processes that want one resource.
import { ExclusionBroken } from '../bench.mjs';
import { nowNs } from './clock.mjs';
import { concat, overlaps } from './exclusion.mjs';
import { largest, quantile, sum } from './statistics.mjs';

const START_MS = 60;
const DRAIN_MS = 2_000;
const TRIAL_DRAIN_MS = 500;

/**
 * @param {import('../bench.mjs').Bench} bench
 * @param {import('../contestants/index.mjs').Contestant} one
 * @param {{ scenario: string, ms: number, sectionMs: number, processes: number, callers: number, tuning: object,
 *   isTrial?: boolean }} options see tasks/contend.mjs;
 *   a trial only has to tell settings apart: who still waits at its end is left to end by itself
 */
export async function contend(bench, one, { scenario, ms, processes, callers, tuning, isTrial, ...work }) {
  const workers = bench.fleets.of(one.name, processes);
  const resource = bench.resource(scenario);
  await Promise.all(workers.map((worker) => worker.ask('step', { step: 'ping', resource, tuning }))); // connected
  const startNs = nowNs() + START_MS * 1e6;
  const args = { resource, callers, startNs, ms, drainMs: isTrial ? TRIAL_DRAIN_MS : DRAIN_MS, tuning, ...work };
  const timeoutMs = START_MS + ms + DRAIN_MS + 5_000;
  const results = await Promise.all(workers.map((worker) => worker.ask('contend', args, { timeoutMs })));

  const broken = overlaps(results);
  const stuck = sum(results.map((result) => result.stuck));
  if (stuck > 0 && !isTrial) {
    if (one.kind === 'ours' || one.kind === 'call')
      bench.failures.push(`${scenario}: ${stuck} callers had no lease after everyone else had`);
    await bench.fleets.drop(one.fleet ?? one.name); // they still wait, and would disturb what comes next
  }
  if (broken > 0)
    throw new ExclusionBroken(`exclusion broken: ${broken} sections began beside others that exclude them`);
  return summary(results, { startNs, ms, callers: processes * callers, stuck });
}

function summary(results, { startNs, ms, callers, stuck }) {
  const endNs = startNs + ms * 1e6;
  const counts = results.map(({ left }) => left.filter((at) => at <= endNs).length);
  const leases = sum(counts);
  const cpuUs = (sum(results.map(({ cpuMs }) => cpuMs)) * 1000) / sum(results.map(({ left }) => left.length));
  const waits = concat(results.map(({ waitsMs }) => waitsMs));
  const lengths = concat(results.map(({ entered, left }) => left.map((at, index) => (at - entered[index]) / 1e6)));
  const sectionMs = lengths.length === 0 ? Number.NaN : lengths.reduce((a, b) => a + b, 0) / lengths.length;
  const leasesPerSecond = leases / (ms / 1000);
  const longestWaitMs = largest(waits);
  const fairShareMs = (callers * 1000) / leasesPerSecond;
  return {
    leasesPerSecond,
    cpuUs,
    longestWaitMs,
    waitP50Ms: quantile(waits, 0.5),
    waitP99Ms: quantile(waits, 0.99),
    sectionMs,
    idealShare: (leasesPerSecond * sectionMs) / 1000,
    fairShareMs,
    longestToFairShare: longestWaitMs / fairShareMs,
    processSpread: largest(counts.map((count) => Math.abs(count / (leases / counts.length) - 1))),
    stuckWaiters: stuck,
  };
}
