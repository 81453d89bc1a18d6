import { SetMetadata } from '@nestjs/common';
import type { SingletonRun, SingletonRunOptions } from '../../core/singleton/singleton-run-options.js';
import { declareLockService, describeMethod, wrapMethod } from '../decorators/method.js';
import { jobName, SINGLETON_JOB, type SingletonJob } from './singleton-job.explorer.js';
import type { ResolvedJobOptions } from './singleton-options.js';

/** A job's method: async, and called with the run that it is, if it cares. */
export type JobMethod = (run: SingletonRun) => Promise<unknown>;

/** Decorates a job's method. One that is not async, or takes other parameters, is an error at compile time. */
export type JobMethodDecorator = <M extends JobMethod>(
  target: object,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/** Which tick fires now, and how long its claim is remembered, in milliseconds. */
export type WhichTick = (instance: object) => Pick<SingletonRunOptions, 'tick' | 'keepMs' | 'due'>;

/** Wraps a job's method so that each tick of it runs on one instance of the fleet, and puts the scheduler's mark on it. */
export function singletonMethod(
  resolve: (where: string) => ResolvedJobOptions,
  schedule: MethodDecorator,
  whichTickFor: (prototype: object, options: ResolvedJobOptions) => WhichTick,
): JobMethodDecorator {
  return (target, propertyKey, descriptor) => {
    const where = describeMethod(target, propertyKey);
    const options = resolve(where);
    const job: SingletonJob = { name: options.name, method: String(propertyKey), lockService: options.lockService };
    const lockServiceOf = declareLockService(target, options.lockService);
    const whichTick = whichTickFor(target, options);
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function (this: object) {
          const service = lockServiceOf(this, where);
          const { overlap, onCrash, lock } = options;
          const tick = { job: jobName(job, this), ...whichTick(this), overlap, onCrash, lock };
          return service.runSingleton(tick, (_lease, run) => original.call(this, run));
        },
    );
    SetMetadata(SINGLETON_JOB, job)(target, propertyKey, descriptor);
    schedule(target, propertyKey, descriptor);
  };
}
