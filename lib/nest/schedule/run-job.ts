import { AsyncLocalStorage } from 'node:async_hooks';
import type { SingletonRun, SingletonRunOptions } from '../../core/singleton/singleton-run-options.js';
import type { RedisLockService } from '../redis-lock.service.js';
import type { ResolvedJobOptions } from './singleton-options.js';

/** The method of a job. It is called with its run. */
export type JobMethod = (run: SingletonRun) => unknown;

/** A tick that fires now. `spreadMs`: the longest delay of this one. */
export type JobTick = Pick<SingletonRunOptions, 'tick' | 'keepMs' | 'due' | 'spreadMs'>;

/** A job, as one instance runs it: a decorated method, or one that was added while the application runs. */
export interface JobToRun {
  /** The name of the job in the fleet. */
  readonly name: string;
  readonly options: ResolvedJobOptions;
  readonly work: JobMethod;
}

/** Runs a tick of a job if this instance gets it. Every tick of every job comes this way. */
export function runTick(service: RedisLockService, { name, options, work }: JobToRun, tick: JobTick): Promise<unknown> {
  const { overlap, onCrash, spreadMs, history, lock } = options;
  const run = { job: name, overlap, onCrash, spreadMs, ...history, lock, ...tick };
  return service.runSingleton(run, (_lease, singletonRun) => work(singletonRun));
}

/** How long the claim of a manual run is remembered: for an answer that is lost, and the same command again. */
const MANUAL_KEEP_MS = 60_000;

/**
 * Runs a job because a person or a program asks for it. No other instance knows this tick, so none could run it again
 * after a crash.
 */
export function runManually(
  service: RedisLockService,
  { name, options, work }: JobToRun,
  tick: string,
): Promise<unknown> {
  const { overlap, history, lock } = options;
  const run = {
    job: name,
    tick,
    overlap,
    onCrash: 'skip',
    keepMs: MANUAL_KEEP_MS,
    manual: true,
    ...history,
    lock,
  } as const;
  return service.runSingleton(run, (_lease, singletonRun) => work(singletonRun));
}

/** A manual run of a decorated method, on its way through the decorators above. */
interface ManualRun {
  readonly job: string;
  readonly tick: string;
  isTaken: boolean;
}

const STORAGE_KEY = Symbol.for('nestjs-redis-lock:manual-runs:1');
const shared = globalThis as { [STORAGE_KEY]?: AsyncLocalStorage<ManualRun> };
/** Shared with other copies of this package: one may have decorated the method that another one calls. */
const manualRuns = (shared[STORAGE_KEY] ??= new AsyncLocalStorage());

/**
 * Calls a decorated method as a manual run. It is called by its name, so other decorators above do their part.
 *
 * @returns its result, and whether the decorator of the job was reached
 */
export async function callManually(
  job: string,
  tick: string,
  call: () => unknown,
): Promise<{ readonly result: unknown; readonly isTaken: boolean }> {
  const run: ManualRun = { job, tick, isTaken: false };
  const result = await manualRuns.run(run, call);
  return { result, isTaken: run.isTaken };
}

/** The tick of the manual run that this call of the job's method is, or `undefined`. What it calls is none. */
export function takeManualTick(job: string): string | undefined {
  const run = manualRuns.getStore();
  if (run?.job !== job || run.isTaken) return undefined;
  run.isTaken = true;
  return run.tick;
}
