import { SetMetadata } from '@nestjs/common';
import type { SingletonRun, SingletonRunOptions } from '../../core/singleton/singleton-run-options.js';
import { declareLockService, describeMethod, wrapMethod } from '../decorators/method.js';
import { jobName, SINGLETON_JOB, type SingletonJob } from './singleton-job.explorer.js';
import type { ResolvedJobOptions } from './singleton-options.js';

/** The method of a job: async, and called with its run. */
export type JobMethod = (run: SingletonRun) => Promise<unknown>;

/** Decorates the method of a job. TypeScript refuses a method that is not async, or that has other parameters. */
export type JobMethodDecorator = <M extends JobMethod>(
  target: object,
  propertyKey: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/** Finds the tick that fires now, and how long its claim is kept, in milliseconds. */
export type WhichTick = (instance: object) => Pick<SingletonRunOptions, 'tick' | 'keepMs' | 'due'>;

/**
 * Wraps the method of a job so that each tick runs on one instance of the fleet, and schedules it.
 *
 * @param schedule the decorator of `@nestjs/schedule`
 */
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
