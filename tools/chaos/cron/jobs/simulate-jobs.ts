import type { Omission } from '../../checkers/ticks/missed-ticks.js';
import { checkTicks } from '../../checkers/ticks/ticks.js';
import { startsOf, type TickCall } from '../tick-log.js';
import { JobSimulation, type JobSimulationOptions } from './job-simulation.js';
import type { StoreWitness } from './store-witness.js';

export interface JobsResult {
  readonly counts: Readonly<Record<string, number>>;
  readonly violations: readonly Omission[];
}

/** Runs a simulated fleet whose jobs are remembered, and judges what it did. Everything that happens follows from the seed. */
export async function simulateJobs(options: JobSimulationOptions): Promise<JobsResult> {
  const began = performance.now();
  const simulation = new JobSimulation(options);
  await simulation.run();
  const { witness, history, jobs } = simulation;
  const { calls } = history;
  const onCrashOf = new Map(jobs.map(({ name, onCrash }) => [name, onCrash]));
  const starts = startsOf(calls, (job) => onCrashOf.get(job)!);
  // Records that Redis lost with its data are not required.
  const inLives = starts.map((start) => ({
    ...start,
    job: `${start.job} (life ${witness.lifeOf.get(start.fencingToken)})`,
  }));
  const violations = [...witness.violations, ...checkTicks(inLives), ...checkEnds(calls, witness)];
  if (!simulation.isClean) violations.push({ rule: 'left over', what: 'a lock is still held' });
  const outcomes = [...witness.endOf.values()];
  const count = (outcome: string): number => outcomes.filter((each) => each === outcome).length;
  return {
    counts: {
      seed: options.seed,
      ticks: witness.counts.granted + witness.counts.told,
      fires: calls.length,
      starts: starts.length,
      reruns: starts.filter(({ rerun }) => rerun).length,
      ok: count('ok'),
      failed: count('error'),
      lost: count('lost'),
      endUnknown: starts.filter(({ fencingToken }) => !witness.endOf.has(fencingToken)).length,
      ...witness.counts,
      ...simulation.counts,
      tookMs: Math.round(performance.now() - began),
    },
    violations,
  };
}

/** Compares the ends that the store recorded with the ends that the processes saw. */
function checkEnds(calls: readonly TickCall[], { endOf, lifeOf }: StoreWitness): Omission[] {
  const violations: Omission[] = [];
  const tell = (rule: string, { job, tick, on }: TickCall, what: string): void => {
    violations.push({ rule, what: `${job} ${tick} on ${on}: ${what}` });
  };
  const started = new Set<number>();
  for (const call of calls) {
    const { start, end, done, killedAt } = call;
    if (!done && killedAt === undefined) tell('never came back', call, 'the call has no end');
    if (!start) continue;
    started.add(start.token);
    const told = endOf.get(start.token);
    if (!lifeOf.has(start.token)) tell('unknown start', call, `token ${start.token} was never granted`);
    if (told === 'none') tell('wrong end', call, 'it has begun, and its entry was deleted');
    if (!end && told !== undefined && told !== 'lost') tell('wrong end', call, `it has not ended, and is ${told}`);
    if (!end || told === undefined || told === 'lost') continue;
    const should = end.hasFailed ? 'error' : 'ok';
    if (told !== should) tell('wrong end', call, `it is ${told}, and not ${should}`);
  }
  for (const [token, outcome] of endOf) {
    const isRun = outcome === 'ok' || outcome === 'error';
    if (isRun && !started.has(token))
      violations.push({ rule: 'wrong end', what: `token ${token} is ${outcome}, and never began` });
  }
  return violations;
}
