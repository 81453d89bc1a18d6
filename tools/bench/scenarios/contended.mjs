// The common part of the contended scenarios.
import { contend } from '../measure/contention.mjs';

export const PROCESSES = 4;
export const CALLERS = 8;
const ROUND_MS = 3_000;
const TRIAL_MS = 1_200;

export const waitMetrics = [
  { id: 'leasesPerSecond', label: 'leases/s', digits: 0 },
  { id: 'longestWaitMs', label: 'longest wait, ms', digits: 0 },
  { id: 'waitP50Ms', label: 'wait p50, ms', digits: 1 },
  { id: 'waitP99Ms', label: 'wait p99, ms', digits: 1 },
  { id: 'cpuUs', label: 'client CPU for a lease, µs', digits: 1 },
];

/** @param {object} work what the callers do: see tasks/contend.mjs */
export async function runContended(bench, scenario, work, everyone = bench.contestants('ours', 'call', 'peer')) {
  const run = (one, ms, tuning, isTrial = false) =>
    contend(bench, one, { scenario, ms, ...work, processes: PROCESSES, callers: CALLERS, tuning, isTrial });
  const tried = {};
  for (const one of everyone) {
    tried[one.name] = await bench.tune(scenario, one, async (tuning) => {
      const { leasesPerSecond } = await run(one, bench.ms(TRIAL_MS), tuning, true);
      return leasesPerSecond;
    });
  }
  bench.say('  settings chosen');
  const rounds = await bench.eachRound(scenario, everyone, (one) =>
    run(one, bench.ms(ROUND_MS), bench.tuningOf(scenario, one)),
  );
  const settings = Object.fromEntries(everyone.map((one) => [one.name, bench.tuningOf(scenario, one)]));
  return { rounds, settings, tried };
}
