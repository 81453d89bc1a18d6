import { AsyncLocalStorage } from 'node:async_hooks';
import { InvalidLockOptionsError } from '../../core/api/errors.js';
import type { SingletonRun } from '../../core/singleton/singleton-run-options.js';
import { sharedByCopies } from '../../core/util/objects.js';

/** A decorated method that is a job. Each decorated method has another object. */
interface MethodOfJob {
  /** The prototype that has the method, and its name there. */
  readonly target: object;
  readonly method: string;
  /** The class and the method, for messages. */
  readonly where: string;
  /** The name of the decorator, for messages. */
  readonly decorator: string;
}

/** A decorated method that runs as a job now. */
interface RunningMethod {
  readonly self: object;
  readonly job: MethodOfJob;
  readonly run: SingletonRun;
  isOver: boolean;
  /** The decorator below that of the job which has returned without the method. */
  skippedBy?: string | undefined;
}

/** One copy of this package may have decorated the base class, and another one the subclass. */
const runningMethods = sharedByCopies('running-methods:1', () => new AsyncLocalStorage<RunningMethod>());

/**
 * Runs the method of a job. {@link overridingRun} knows it until it ends.
 *
 * @throws InvalidLockOptionsError when a decorator below has returned without the method: the tick has not run
 */
export async function runMethod(
  self: object,
  job: MethodOfJob,
  run: SingletonRun,
  method: () => unknown,
): Promise<unknown> {
  const running: RunningMethod = { self, job, run, isOver: false };
  try {
    const result = await runningMethods.run(running, method);
    if (running.skippedBy === undefined) return result;
    throw new InvalidLockOptionsError(
      `${job.where} did not run for this tick: ${running.skippedBy}, which stands below @${job.decorator}, has returned ` +
        `without it. Write it above @${job.decorator}, also above the decorators between them. Then such a call claims ` +
        'no tick.',
      'decorator',
    );
  } finally {
    running.isOver = true;
  }
}

/**
 * The run of a job of a subclass that calls the method which it overrides, by `super`. That method is a job too, and
 * would ask for a tick that the subclass has.
 */
export function overridingRun(self: object, job: MethodOfJob): SingletonRun | undefined {
  const running = runningMethods.getStore();
  if (!running || running.isOver || running.self !== self) return undefined;
  return running.job !== job && running.job.method === job.method ? running.run : undefined;
}

/**
 * Called by a decorator that may return without its method. Where it stands on the method of a job that runs now, that
 * run learns whether the method was called. A decorator in between may try again.
 *
 * @param decorator its name, for messages
 * @returns a function to call before the method
 */
export function mayBeSkipped(self: object, target: object, name: string | symbol, decorator: string): () => void {
  const running = runningMethods.getStore();
  const isOfJob = running?.self === self && running.job.target === target && running.job.method === name;
  if (!isOfJob || running.isOver) return () => {};
  running.skippedBy = decorator;
  return () => (running.skippedBy = undefined);
}
