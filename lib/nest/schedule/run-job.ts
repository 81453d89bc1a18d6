import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { TicksAround, TickSchedule } from '../../core/jobs/tick-schedule.js';
import type { SingletonRun, SingletonRunOptions, SingletonWork } from '../../core/singleton/singleton-run-options.js';
import type { RedisLockService } from '../redis-lock.service.js';
import { clockOf, partsOf } from '../service-parts.js';
import type { ResolvedJobOptions } from './singleton-options.js';

/** The method of a job. It is called with its run. */
export type JobMethod = (run: SingletonRun) => unknown;

/** A tick that fires now. `spreadMs`: the longest delay of this one. */
export interface JobTick extends Pick<SingletonRunOptions, 'tick' | 'keepMs' | 'due' | 'spreadMs'> {
  /** The schedule that the tick belongs to, with the ticks before and after it. Not set where ticks have no order. */
  readonly of?: { readonly schedule: TickSchedule; readonly around: TicksAround } | undefined;
  /** When the next tick is due, where the tick belongs to no schedule. */
  readonly next?: number | undefined;
}

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
  const { of, next, ...target } = tick;
  const run = { job: name, overlap, onCrash, spreadMs, ...history, lock, ...target };
  const doWork: SingletonWork<unknown> = (_lease, singletonRun) => work(singletonRun);
  const parts = partsOf(service);
  const watch = parts?.jobs;
  if (!parts || !watch) return service.runSingleton(run, doWork);
  const runs = parts.singletonRuns;
  const at = target.due?.at;
  const onUnknown = (): void => watch.missed.unknown(name);
  if (!of || at === undefined) return runs.run(run, doWork, { next, onUnknown });
  const { schedule, around } = of;
  return runs.run(run, doWork, {
    schedule: schedule.text,
    previous: around.before,
    next: around.after,
    onGap: (after) => watch.missed.close(name, after, at, schedule),
    onAccounted: () => watch.missed.accounted(name, at, around.after),
    onUnknown,
  });
}

/**
 * Runs a job once for all ticks that were missed, if this instance gets that run. The record of the job in the store
 * grants it once, however long a claim is remembered.
 */
export function runForMissed(
  service: RedisLockService,
  { name, options, work }: JobToRun,
  { tick, schedule }: OwedTick,
): Promise<unknown> {
  const { overlap, onCrash, history, lock } = options;
  const run = { job: name, tick, overlap, onCrash, keepMs: MANUAL_KEEP_MS, ...history, lock };
  const plan = {
    kind: 'catchUp',
    schedule: schedule?.text,
    next: schedule?.after(clockOf(service).wallNow()),
  } as const;
  const runs = partsOf(service)?.singletonRuns;
  return runs ? runs.run(run, (_lease, singletonRun) => work(singletonRun), plan) : Promise.resolve();
}

/** A tick of its own for a manual run. The text says when, and by whom. */
export function manualTick(now: number, by: string | undefined): string {
  const id = `manual:${new Date(now).toISOString()}:${randomUUID().slice(0, 8)}`;
  return by === undefined ? id : `${id} by ${by}`;
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

/** The run for missed ticks. */
export interface OwedTick {
  readonly tick: string;
  readonly schedule: TickSchedule | undefined;
}

/** A tick that a test fires, in place of a timer. */
export interface FiredTick {
  readonly tick: JobTick;
  /** Called when this instance has the tick, before the method. */
  readonly begins: () => void;
}

/** Runs a tick that a test fires, if this instance gets it. */
export function runFired(service: RedisLockService, job: JobToRun, { tick, begins }: FiredTick): Promise<unknown> {
  const work = (run: SingletonRun): unknown => {
    begins();
    return job.work(run);
  };
  return runTick(service, { ...job, work }, tick);
}

/** Why a decorated method runs where no timer calls it. Without `owed` and `fired`, an operator asks for it. */
interface ManualReason {
  /** Of a run for missed ticks. */
  readonly owed?: OwedTick | undefined;
  /** Of a test. */
  readonly fired?: FiredTick | undefined;
}

/** A run of a decorated method that no timer begins, on its way through the decorators above. */
interface ManualRun extends ManualReason {
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
  reason: ManualReason = {},
): Promise<{ readonly result: unknown; readonly isTaken: boolean }> {
  const run: ManualRun = { job, tick, ...reason, isTaken: false };
  const result = await manualRuns.run(run, call);
  return { result, isTaken: run.isTaken };
}

/** The manual run that this call of the job's method is, or `undefined`. What it calls is none. */
export function takeManualTick(job: string): Pick<ManualRun, 'tick' | 'owed' | 'fired'> | undefined {
  const run = manualRuns.getStore();
  if (run?.job !== job || run.isTaken) return undefined;
  run.isTaken = true;
  return run;
}

/** A decorated method that runs as a job now. */
interface RunningMethod {
  readonly self: object;
  /** What the decorator keeps of it: another object for each decorated method. */
  readonly job: { readonly method: string };
  readonly run: SingletonRun;
  isOver: boolean;
}

const RUNNING_KEY = Symbol.for('nestjs-redis-lock:running-methods:1');
const sharedRunning = globalThis as { [RUNNING_KEY]?: AsyncLocalStorage<RunningMethod> };
/** Shared with other copies of this package: one may have decorated the base class, and another one the subclass. */
const runningMethods = (sharedRunning[RUNNING_KEY] ??= new AsyncLocalStorage());

/** Runs the method of a job. {@link overridingRun} knows it until it ends. */
export async function runMethod(
  self: object,
  job: RunningMethod['job'],
  run: SingletonRun,
  method: () => unknown,
): Promise<unknown> {
  const running: RunningMethod = { self, job, run, isOver: false };
  try {
    return await runningMethods.run(running, method);
  } finally {
    running.isOver = true;
  }
}

/**
 * The run of a job of a subclass that calls the method which it overrides, by `super`. That method is a job too, and
 * would ask for a tick that the subclass has.
 */
export function overridingRun(self: object, job: RunningMethod['job']): SingletonRun | undefined {
  const running = runningMethods.getStore();
  if (!running || running.isOver || running.self !== self) return undefined;
  return running.job !== job && running.job.method === job.method ? running.run : undefined;
}
