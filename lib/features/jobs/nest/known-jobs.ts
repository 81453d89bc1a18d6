import 'reflect-metadata';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { quote } from '../../../kernel/util/quoted.js';
import { scheduleDecoratorOf } from '../../../nest/decorators/known-handlers.js';
import { type InstanceWrapper, prototypeOf } from '../../../nest/scan.js';
import type { Scheduler } from './scheduler.js';
import { type FoundJob, methodsOf, schedulingOf, SINGLETON_JOB, type SingletonJob } from './singleton-method.js';
import { describeJob } from './singleton-options.js';

/** The jobs of an application, by name. It refuses jobs that could not run once for each tick. */
export class KnownJobs {
  readonly methods = new Map<string, object>();
  readonly #first = new Map<string, { readonly owner: object; readonly definedBy: FoundJob['definedBy'] }>();

  /**
   * @param owner the object whose method is scheduled, if it is
   * @throws InvalidLockOptionsError
   */
  add({ job, method, name, where, definedBy }: FoundJob, owner: object | undefined): void {
    const first = this.methods.get(name);
    if (first !== undefined && first !== method) {
      throw new InvalidLockOptionsError(
        `Two singleton jobs are called ${quote(name)}. The second one is ${where}. ` +
          `They would take each other's ticks. Give one of them another name.`,
        'name',
      );
    }
    this.methods.set(name, method);
    checkHasStableName(job, definedBy);
    checkIsScheduled(job, method, where);
    if (!owner) return;
    const scheduled = this.#first.get(name) ?? { owner, definedBy };
    this.#first.set(name, scheduled);
    if (scheduled.owner !== owner) throw twoObjects(describeJob(job.name, where), scheduled.definedBy, definedBy);
  }
}

/**
 * A plain `@Cron` with the name of a singleton job, or another lock service's: the scheduler refuses the second of them,
 * and names neither method.
 */
export function checkOthers(
  wrappers: readonly InstanceWrapper[],
  jobs: ReadonlyMap<string, object>,
  scheduler: Scheduler,
): void {
  const kindsOfJobs = new Map([...jobs].map(([name, method]) => [name, scheduleDecoratorOf(method)]));
  for (const prototype of new Set(wrappers.map(prototypeOf))) {
    for (const [key, method] of prototype ? methodsOf(prototype) : []) {
      const name: unknown = Reflect.getMetadata('SCHEDULER_NAME', method);
      const kind = scheduleDecoratorOf(method);
      if (typeof name !== 'string' || kind === undefined || kindsOfJobs.get(name) !== kind) continue;
      if (jobs.get(name) === method || !scheduler.isImported || scheduler.switchedOffBy(method)) continue;
      throw new InvalidLockOptionsError(
        `${whereIs(jobs.get(name)!, wrappers)} is a singleton job called ${quote(name)}, and ` +
          `${prototype!.constructor.name}.${key} is a @${kind} of the same name. @nestjs/schedule refuses the second of ` +
          `them. Give one of them another name. A singleton job with a new name starts without its history and its pauses.`,
        'name',
      );
    }
  }
}

function whereIs(method: object, wrappers: readonly InstanceWrapper[]): string {
  const { method: key } = Reflect.getMetadata(SINGLETON_JOB, method) as SingletonJob;
  const prototype = wrappers.map(prototypeOf).find((each) => (each as Record<string, unknown>)?.[key] === method);
  return prototype ? `${prototype.constructor.name}.${key}` : key;
}

function twoObjects(what: string, first: FoundJob['definedBy'], second: FoundJob['definedBy']): Error {
  const isOne = first === second;
  return new InvalidLockOptionsError(
    `Two objects ${isOne ? 'of one class' : `of the classes ${first.name} and ${second.name}`} have ${what}. They would ` +
      "take each other's ticks, so for each tick only one of the objects would run it. If one object is enough, provide " +
      `${isOne ? 'the class in one module, and export it there' : 'only one of the classes'}. For one job per ` +
      'object, remove the decorator, and add each job under a name of its own with SingletonJobs.add.',
    'name',
  );
}

/** The scheduler calls the placeholder of a transient provider: an object whose constructor has not run. */
export function ofTransient({ where }: FoundJob): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `The job of ${where} is on a provider with Scope.TRANSIENT. Nest makes an object for each class that injects it, and ` +
      '@nestjs/schedule calls none of them. Put the job on a provider of the default scope, which may inject this one.',
    'scope',
  );
}

/** The class name from Nest's `mixin()`. It is random, so it differs in each process. */
const NAME_OF_MIXIN = /^[a-z\d]{21}$/;

/** @param definedBy the class that names the job */
function checkHasStableName({ name, method }: SingletonJob, definedBy: object): void {
  const className = (definedBy as { readonly name: string }).name;
  if (name !== undefined || !NAME_OF_MIXIN.test(className)) return;
  // A class may be written like that.
  if (Function.prototype.toString.call(definedBy).startsWith(`class ${className} `)) return;
  throw new InvalidLockOptionsError(
    `The singleton job ${method} of a mixin has no name. mixin() names the class ${quote(className)} here, and ` +
      'differently in each process, so every instance would run each tick. Give the job a name.',
    'name',
  );
}

/** A decorator of `@nestjs/schedule` above takes the place of the schedule. */
function checkIsScheduled({ decorator, scheduling }: SingletonJob, method: object, where: string): void {
  const now = schedulingOf(method);
  if ([...now].every(([key, value]) => scheduling.get(key) === value)) return;
  throw new InvalidLockOptionsError(
    `${where}: another decorator of @nestjs/schedule is above @${decorator}, and replaces its schedule. ` +
      'Remove one of them.',
    'decorator',
  );
}
