import type { TickSchedule } from '../../core/jobs/tick-schedule.js';
import type { SingletonRun } from '../../core/singleton/singleton-run-options.js';
import { SetMetadata } from '@nestjs/common';
import { copyMetadata, declareLockService, describeMethod, wrapMethod } from '../decorators/method.js';
import { jobName, SINGLETON_JOB, type SingletonJob } from './singleton-job.explorer.js';
import type { IsAny, Mistake, ResultMistake } from '../decorators/method-types.js';
import { clockOf } from '../service-clock.js';
import {
  type JobMethod,
  type JobTick,
  runFired,
  runForMissed,
  runManually,
  runTick,
  takeManualTick,
} from './run-job.js';
import type { ResolvedJobOptions } from './singleton-options.js';

/**
 * Decorates the method of a job: async, or without a result. TypeScript refuses a method that has other parameters, or
 * whose result type hides that a call returns a promise of `undefined` where another instance runs the job.
 */
export interface JobMethodDecorator {
  <M extends JobMethod>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M> & (JobMistake<ReturnType<M>> extends void ? unknown : never),
  ): void;
  // Accepts nothing else, but returns why not.
  <M>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): IsAny<M> extends true
    ? void
    : M extends JobMethod
      ? JobMistake<ReturnType<M>>
      : Mistake<'A job is called with no parameter but its SingletonRun'>;
}

/** The mistake of a job whose result type `R` hides what a call returns, and otherwise `void`. */
type JobMistake<R> = unknown extends R
  ? void
  : [R] extends [void | PromiseLike<unknown>]
    ? ResultMistake<undefined, R>
    : Mistake<'A job that returns a result must be async'>;

/** The ticks of the job of a method. */
export interface MethodTicks {
  /** The tick that fires now. */
  now(instance: object, wallNow: number): JobTick;
  /** When ticks are due, as the job is scheduled at the moment. Not set where ticks have no order. */
  schedule?(instance: object): TickSchedule | undefined;
}

/**
 * Wraps the method of a job so that each tick runs on one instance of the fleet, and schedules it. The wrapper of a
 * method that is not async returns a promise, as the scheduler expects.
 *
 * @param schedule the decorator of `@nestjs/schedule`
 */
export function singletonMethod(
  resolve: (where: string) => ResolvedJobOptions,
  schedule: MethodDecorator,
  ticksFor: (prototype: object, options: ResolvedJobOptions) => MethodTicks,
): JobMethodDecorator {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    const options = resolve(where);
    const lockServiceOf = declareLockService(target, options.lockService);
    const ticks = ticksFor(target, options);
    const { name: ownName, lockService } = options;
    const job: SingletonJob = { name: ownName, method: String(propertyKey), lockService, options, ticks };
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function (this: object) {
          const service = lockServiceOf(this, where);
          const name = jobName(job, this);
          const toRun = { name, options, work: (run: SingletonRun) => original.call(this, run) };
          const manual = takeManualTick(name);
          if (!manual) return runTick(service, toRun, ticks.now(this, clockOf(service).wallNow()));
          if (manual.fired) return runFired(service, toRun, manual.fired);
          return manual.owed ? runForMissed(service, toRun, manual.owed) : runManually(service, toRun, manual.tick);
        },
    );
    SetMetadata(SINGLETON_JOB, job)(target, propertyKey, descriptor);
    const wrapped = descriptor.value as object;
    schedule(target, propertyKey, descriptor);
    // Sentry replaces that decorator by one that replaces the method.
    if (descriptor.value !== wrapped) copyMetadata(wrapped, descriptor.value as object);
  };
}
