import { type CronResult, judge } from '../cron-result.js';
import { CronSimulation, type CronSimulationOptions } from './cron-simulation.js';
import { SIMULATED_JOBS } from './simulated-job.js';

/**
 * Runs a simulated fleet on the clock of the simulation, and judges what it did. Everything that happens follows from the
 * seed.
 */
export async function simulateCron(options: CronSimulationOptions): Promise<CronResult> {
  const began = performance.now();
  const simulation = new CronSimulation(options);
  const simulatedFrom = simulation.now();
  await simulation.run();
  const judgement = judge(simulation.history.calls, options.jobs ?? SIMULATED_JOBS);
  if (!simulation.isClean) judgement.violations.push({ rule: 'left over', what: 'a lock is held by nobody alive' });
  return {
    seed: options.seed,
    ...judgement,
    ...simulation.counts,
    simulatedMs: simulation.now() - simulatedFrom,
    tookMs: Math.round(performance.now() - began),
  };
}
