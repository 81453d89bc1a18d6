// One task in one fresh process of ours, for the scenarios that measure only us.
import { contestant, OURS } from '../contestants/index.mjs';
import { WorkerProcess } from '../processes/worker-process.mjs';

/** @returns {Promise<any>} what the task returns; the process is gone then */
export async function inProcessOfOurs(bench, task, args, { timeoutMs } = {}) {
  const worker = new WorkerProcess({ contestant: OURS, url: bench.url, execArgv: ['--expose-gc'] });
  try {
    return await worker.ask(task, args, { timeoutMs });
  } finally {
    worker.kill();
    await worker.exited;
  }
}

/** @returns the rounds of a scenario in which only our package takes part */
export function roundsOfOurs(bench, scenario, measure, options) {
  return bench.eachRound(scenario, [contestant(OURS)], measure, options);
}

/** One task measures several series: each becomes a row. */
export function spreadSeries(rounds) {
  return rounds.map(({ order, values: { ours } }) => ({ order, values: ours.failed === undefined ? ours : { ours } }));
}
