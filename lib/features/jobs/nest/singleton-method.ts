import { SetMetadata } from '@nestjs/common';
import { MetadataScanner } from '@nestjs/core';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import type { TickSchedule } from '../core/watched-job.js';
import type { SingletonRun } from '../core/singleton-run-options.js';
import {
  copyMetadata,
  declareLockService,
  describeMethod,
  overridingRun,
  runMethod,
  skippingDecoratorOf,
  wrapMethod,
} from '../../../nest/decorators/method.js';
import type { IsAny, Mistake, ResultMistake } from '../../../nest/decorators/method-types.js';
import { clockOf } from '../../../nest/service-parts.js';
import { type Job, type RunTrigger, type JobMethod, runJob, takeTrigger } from './run-job.js';

/**
 * Decorates the method of a job, which must be async or return nothing. TypeScript rejects a method that requires a
 * parameter other than the run, and one whose result type excludes `undefined`, which a call returns if another
 * instance runs the job.
 */
export interface JobMethodDecorator {
  <M extends JobMethod, K extends string | symbol>(
    target: object,
    propertyKey: K,
    descriptor: TypedPropertyDescriptor<M> & (JobMistake<ReturnType<M>, K> extends void ? unknown : never),
  ): void;
  // Accepts nothing else, but returns why not.
  <M, K extends string | symbol>(
    target: object,
    propertyKey: K,
    descriptor: TypedPropertyDescriptor<M>,
  ): IsAny<M> extends true
    ? void
    : M extends JobMethod
      ? JobMistake<ReturnType<M>, K>
      : Mistake<'A job is called with no parameter other than its SingletonRun'>;
}

// The mistake of a job with the name `K`, or whose result type `R` hides what a call returns; otherwise `void`.
type JobMistake<R, K> =
  IsSymbol<K> extends true
    ? Mistake<'@nestjs/schedule does not find methods whose name is a symbol'>
    : unknown extends R
      ? void
      : [R] extends [void | PromiseLike<unknown>]
        ? ResultMistake<undefined, R>
        : Mistake<'A job that returns a result must be async'>;

type IsSymbol<K> = IsAny<K> extends true ? false : K extends symbol ? true : false;

/** The metadata key of a singleton job, on the method. */
export const SINGLETON_JOB = 'nestjs-redis-lock:singleton-job';

/** A method that is a singleton job. */
export interface SingletonJob {
  /** The name of the job, if it has one. */
  readonly name: string | undefined;
  readonly method: string;
  readonly lockService: string | undefined;
  readonly options: Job['options'];
  readonly ticks: {
    /** The tick that fires now. @param wallNow milliseconds since the Unix epoch */
    now(instance: object, wallNow: number): RunTrigger['tick'];
    /** Returns the job's current schedule. Not set if ticks have no order. */
    schedule?(instance: object): TickSchedule | undefined;
    /** The time between two ticks of an interval. */
    readonly intervalMs?: number;
    /** Called for each object that is scheduled, before the scheduler makes its job. @throws InvalidLockOptionsError */
    mount?(instance: object): void;
  };
  /** The name of the decorator, for messages. */
  readonly decorator: string;
  /** The scheduler's metadata of the method. */
  readonly scheduling: ReadonlyMap<unknown, unknown>;
}

/** Returns the name of the job in the fleet: its own, or class and method. */
export function jobName({ name, method }: Pick<SingletonJob, 'name' | 'method'>, instance: object): string {
  return name ?? `${instance.constructor.name}.${method}`;
}

/** Returns the metadata of `@nestjs/schedule` on a method, by key. */
export function schedulingOf(method: object): ReadonlyMap<unknown, unknown> {
  const keys = Reflect.getMetadataKeys(method).filter((key) => String(key).startsWith('SCHEDULE'));
  return new Map(keys.map((key: unknown) => [key, Reflect.getMetadata(key, method)]));
}

/**
 * Wraps the method of a job so that each tick runs on one instance of the fleet, and schedules it. The wrapper of a
 * method that is not async returns a promise, as the scheduler expects.
 *
 * @param planOf checks the options, once for each method; `where` is the method, for its errors
 */
export function singletonMethod(
  decorator: string,
  planOf: (where: string, prototype: object) => Pick<SingletonJob, 'options' | 'ticks'> & { schedule: MethodDecorator },
): JobMethodDecorator {
  return (target: object, propertyKey: string | symbol, descriptor: PropertyDescriptor) => {
    const where = describeMethod(target, propertyKey);
    checkIsOnlyJob(target, propertyKey, descriptor, { where, decorator });
    const { options, schedule, ticks } = planOf(where, target);
    const lockServiceOf = declareLockService(target, options.lockService);
    const { name: ownName, lockService } = options;
    const own = { name: ownName, target, method: String(propertyKey), where, lockService, options, ticks, decorator };
    wrapMethod(
      descriptor,
      where,
      (original) =>
        async function (this: object) {
          const service = lockServiceOf(this, where);
          const overriding = overridingRun(this, own) as SingletonRun | undefined;
          if (overriding) return original.call(this, overriding);
          const name = jobName(own, this);
          const work = (run: SingletonRun): unknown => runMethod(this, own, run, () => original.call(this, run));
          const tickNow = () => ticks.now(this, clockOf(service).wallNow());
          const { intervalMs } = ticks;
          const schedule = ticks.schedule && (() => ticks.schedule!(this));
          const occasion = takeTrigger(name) ?? { kind: 'tick' as const, tick: tickNow() };
          return runJob(service, { name, options, work, schedule, intervalMs }, occasion);
        },
    );
    const wrapped = descriptor.value as object;
    schedule(target, propertyKey, descriptor);
    // Sentry replaces that decorator by one that replaces the method.
    if (descriptor.value !== wrapped) copyMetadata(wrapped, descriptor.value as object);
    const job: SingletonJob = { ...own, scheduling: schedulingOf(descriptor.value as object) };
    SetMetadata(SINGLETON_JOB, job)(target, propertyKey, descriptor);
    Reflect.defineMetadata(SINGLETON_JOB, job, target, propertyKey);
  };
}

/**
 * Two schedules on one method would take each other's ticks, and a method that may return without running would be
 * reported as run.
 */
function checkIsOnlyJob(
  target: object,
  propertyKey: string | symbol,
  descriptor: PropertyDescriptor | undefined,
  { where, decorator }: { readonly where: string; readonly decorator: string },
): void {
  const refuse = (why: string): never => {
    throw new InvalidLockOptionsError(`${where}: ${why}`, 'decorator');
  };
  if (typeof propertyKey === 'symbol') {
    refuse('its name is a symbol. @nestjs/schedule only finds methods whose name is a string. Give it such a name.');
  }
  const below = Reflect.getOwnMetadata(SINGLETON_JOB, target, propertyKey) as SingletonJob | undefined;
  if (below) {
    refuse(
      `@${decorator} is above @${below.decorator}. The scheduler has one schedule for a method, and each tick would ` +
        'be claimed twice. Remove one of them, or write two scheduled methods that call this one.',
    );
  }
  const value: unknown = descriptor?.value;
  if (typeof value !== 'function') return;
  if (schedulingOf(value).size > 0) {
    refuse(`@${decorator} is above another decorator of @nestjs/schedule. Leave that one out.`);
  }
  const skipping = skippingDecoratorOf(value);
  if (skipping !== undefined) {
    refuse(
      `@${decorator} is above ${skipping}, which may return without running the method. The tick would then be ` +
        `claimed and reported as run, although nothing ran. Write ${skipping} above @${decorator}.`,
    );
  }
}

/** A job of a class, as it was found. */
export interface FoundJob {
  readonly job: SingletonJob;
  readonly method: object;
  /** The name of the job in the fleet. */
  readonly name: string;
  /** The class and the method, for messages. */
  readonly where: string;
  readonly definedBy: { readonly name: string };
}

/** The jobs of a class. @param instance whose methods are meant */
export function* jobsOf(prototype: object, instance = prototype): Generator<FoundJob> {
  for (const [key, method] of methodsOf(prototype, instance)) {
    const job = jobOf(method);
    if (!job) continue;
    const definedBy = prototype.constructor;
    yield { job, method, name: jobName(job, prototype), where: `${definedBy.name}.${key}`, definedBy };
  }
}

/**
 * Returns the own metadata of a method: `Reflect.getMetadata` also searches the class that a function extends, which is
 * most of the time of a scan of all methods of an application.
 */
function jobOf(method: object): SingletonJob | undefined {
  for (let at: object | null = method; at !== null && at !== Function.prototype; at = Object.getPrototypeOf(at)) {
    const job = Reflect.getOwnMetadata(SINGLETON_JOB, at) as SingletonJob | undefined;
    if (job) return job;
  }
  return undefined;
}

export function* methodsOf(prototype: object, instance = prototype): Generator<[key: string, method: object]> {
  for (const key of new MetadataScanner().getAllMethodNames(prototype)) {
    const method = (instance as Record<string, unknown>)[key];
    if (typeof method === 'function') yield [key, method];
  }
}
