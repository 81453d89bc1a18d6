import 'reflect-metadata';
import {
  type ForwardReference,
  type InjectionToken,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleInit,
  Scope,
} from '@nestjs/common';
import { type DiscoveryService, MetadataScanner } from '@nestjs/core';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { type InstanceWrapper, prototypeOf, wrappersOf } from '../../../nest/scan.js';
import { muteUnclaimedTicks } from '../../../nest/log/start-log.js';
import { type ScheduleDecorator, scheduleDecoratorOf } from '../../../nest/decorators/known-handlers.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import { DEFAULT_NAME, partsOf } from '../../../nest/service-parts.js';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { callFor, checkMissedIsKept, type Job, watchJob } from './run-job.js';
import { jobName, schedulingOf, SINGLETON_JOB, type SingletonJob } from './singleton-method.js';
import { describeJob } from './singleton-options.js';
import { entryOf, isObject } from '../../../kernel/util/objects.js';

/** The options of `ScheduleModule.forRoot`, by which it leaves out jobs of one kind. */
const SWITCHES = ['cronJobs', 'intervals', 'timeouts'] as const;

type Switch = (typeof SWITCHES)[number];
type Switches = Partial<Record<Switch, boolean>>;

const DECORATORS: Record<Switch, ScheduleDecorator> = { cronJobs: 'Cron', intervals: 'Interval', timeouts: 'Timeout' };

/** A timer that cannot be restarted. */
const NOT_FOUND: Pick<NodeJS.Timeout, 'refresh'> = {
  refresh() {
    return this as NodeJS.Timeout;
  },
};

/** The `ScheduleModule` of an application. It may come from another copy of `@nestjs/schedule`. */
export class Scheduler {
  readonly isImported: boolean;
  readonly #switches: Switches;
  readonly #registry: SchedulerRegistry | undefined;

  constructor(discovery: DiscoveryService) {
    const providers = discovery.getProviders();
    const options = providers.find(({ token }) => token === 'SCHEDULE_MODULE_OPTIONS');
    // The registry is public, and the token of the options is not: a later version may rename that.
    const registry = providers.find(({ name }) => name === 'SchedulerRegistry');
    this.isImported = options !== undefined || registry !== undefined;
    this.#registry = registry?.instance as SchedulerRegistry | undefined;
    this.#switches = (options?.instance ?? {}) as Switches;
  }

  /**
   * Returns the timer of an interval; `undefined` if it is not scheduled. The timer of an interval without a name
   * cannot be found.
   */
  intervalOf(method: object, name: string | undefined): Pick<NodeJS.Timeout, 'refresh'> | undefined {
    if (!this.isImported || this.switchedOffBy(method)) return undefined;
    if (name === undefined) return NOT_FOUND;
    return this.#registry?.doesExist('interval', name)
      ? (this.#registry.getInterval(name) as NodeJS.Timeout)
      : undefined;
  }

  /** The option by which the module leaves out the jobs of this method's kind. */
  switchedOffBy(method: object): Switch | undefined {
    const decorator = scheduleDecoratorOf(method);
    return SWITCHES.find((name) => this.#switches[name] === false && DECORATORS[name] === decorator);
  }
}

interface FoundJob {
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

function* methodsOf(prototype: object, instance = prototype): Generator<[key: string, method: object]> {
  for (const key of new MetadataScanner().getAllMethodNames(prototype)) {
    const method = (instance as Record<string, unknown>)[key];
    if (typeof method === 'function') yield [key, method];
  }
}

/**
 * Looks at the singleton jobs when the application starts, and watches them from then on. One explorer for each lock
 * service.
 *
 * It refuses two jobs with one name, and one job of two objects: they would claim each other's ticks, so each tick would
 * run only one of them. It refuses jobs that have another name in each process, and those whose schedule was replaced. It
 * warns of jobs without a name if another application could have jobs with the same class and method on the same keys,
 * and of jobs that never run because there is no `ScheduleModule`.
 */
export class SingletonJobExplorer implements OnModuleInit, OnApplicationBootstrap {
  readonly #logger = new Logger('RedisLockModule');
  readonly #jobs = new Map<string, Job>();
  #scheduler: Scheduler | undefined;

  /**
   * @param service returns the lock service, once it is there: wrong names are an error before Redis is waited for
   * @param areKeysShared whether another application could use the same keys by accident
   */
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly lockService: string,
    private readonly service: () => RedisLockService,
    private readonly areKeysShared: boolean,
  ) {
    this.#checkNames();
  }

  /** The decorated jobs of this application that can run: none on request-scoped providers. By name. */
  get jobs(): ReadonlyMap<string, Job> {
    return this.#jobs;
  }

  onModuleInit(): void {
    const known = new KnownJobs();
    const unnamed = new Set<string>();
    for (const wrapper of wrappersOf(this.discovery)) {
      const instance = wrapper.instance as object | null;
      if (instance === null || typeof instance !== 'object') continue;
      const owner = wrapper.isDependencyTreeStatic() ? instance : undefined;
      for (const found of this.#jobsOf(prototypeOf(wrapper), instance)) {
        const { job, method, name } = found;
        known.add(found, owner);
        if (job.name === undefined) unnamed.add(name);
        if (!owner || this.#jobs.has(name)) continue;
        this.#jobs.set(name, this.#decorated(found, instance));
        if (!this.#isSwitchedOff(method)) job.ticks.mount?.(instance);
      }
    }
    if (known.methods.size > 0) muteUnclaimedTicks(this.discovery);
    if (unnamed.size > 0 && this.areKeysShared) this.#warnOfNames([...unnamed]);
    this.#lookForScheduler(known.methods);
    for (const { name, where, options } of this.#jobs.values()) {
      checkMissedIsKept(this.service(), options.missed.onMissed, `The job ${quote(name)} (${where})`);
    }
  }

  onApplicationBootstrap(): void {
    for (const job of this.#jobs.values()) watchJob(this.service(), job);
    partsOf(this.service())?.jobs?.missed.start();
  }

  /**
   * The scheduler refuses two jobs of one name too, with another explanation. So this comes before it does: there may be
   * no objects yet.
   */
  #checkNames(): void {
    const known = new KnownJobs();
    const wrappers = wrappersOf(this.discovery);
    const requestScope = new RequestScope(wrappers);
    for (const wrapper of wrappers) {
      for (const found of this.#jobsOf(prototypeOf(wrapper))) {
        if (wrapper.isTransient) throw ofTransient(found);
        const isScheduled = found.job.name !== undefined && !requestScope.has(wrapper);
        known.add(found, isScheduled ? ((wrapper.instance as object | undefined) ?? wrapper) : undefined);
      }
    }
    if (known.methods.size > 0) {
      checkOthers(
        wrappers.filter((wrapper) => !requestScope.has(wrapper)),
        known.methods,
        new Scheduler(this.discovery),
      );
    }
  }

  /** The jobs of a class that use this lock service. */
  *#jobsOf(prototype: object | undefined, instance = prototype): Generator<FoundJob> {
    for (const found of prototype ? jobsOf(prototype, instance) : []) {
      if ((found.job.lockService ?? DEFAULT_NAME) === this.lockService) yield found;
    }
  }

  #isSwitchedOff(method: object): boolean {
    this.#scheduler ??= new Scheduler(this.discovery);
    return this.#scheduler.switchedOffBy(method) !== undefined;
  }

  /** A warning and no error, because the jobs may be meant to run elsewhere, or this is a test that calls them. */
  #lookForScheduler(methodsByJob: ReadonlyMap<string, object>): void {
    const scheduler = (this.#scheduler ??= new Scheduler(this.discovery));
    if (methodsByJob.size > 0 && !scheduler.isImported) {
      this.#logger.warn(
        `ScheduleModule is not imported, so ${describeJobs([...methodsByJob.keys()])} will never be scheduled. ` +
          `Import ScheduleModule.forRoot() of @nestjs/schedule in the root module.`,
      );
    }
    const switchedOff = new Map<string, string[]>();
    for (const [job, method] of methodsByJob) {
      const by = scheduler.switchedOffBy(method);
      if (by) entryOf(switchedOff, by, () => []).push(job);
    }
    for (const [by, jobs] of switchedOff) {
      this.#logger.log(`ScheduleModule has ${by}: false, so ${describeJobs(jobs)} will not be scheduled here.`);
    }
  }

  #warnOfNames(jobs: readonly string[]): void {
    this.#logger.warn(
      `${jobs.length === 1 ? 'A singleton job has' : 'Singleton jobs have'} no name: ${quoteSome(jobs)}. ` +
        `Another application on this Redis with the same class and method names would take their ticks. ` +
        `Give each job a name, or this application a keyPrefix of its own.`,
    );
  }

  #decorated({ job, method, name, where }: FoundJob, instance: object): Job {
    const { method: key, options, ticks } = job;
    const call = (): unknown => (instance as Record<string, () => unknown>)[key]!();
    const schedule = ticks.schedule && (() => (this.#isSwitchedOff(method) ? undefined : ticks.schedule!(instance)));
    return {
      name,
      where,
      options,
      schedule,
      intervalMs: ticks.intervalMs,
      timer: ticks.intervalMs === undefined ? undefined : () => this.#scheduler?.intervalOf(method, job.name),
      tickAt: (wallNow) => ticks.now(instance, wallNow),
      run: (occasion) => callFor(name, occasion, call),
    };
  }
}

/** The jobs of an application, by name. It refuses jobs that could not run once for each tick. */
class KnownJobs {
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
function checkOthers(
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
          `them. Give one of them another name. The history and the pauses of a singleton job belong to its name.`,
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

function twoObjects(
  what: string,
  first: FoundJob['definedBy'],
  second: FoundJob['definedBy'],
): InvalidLockOptionsError {
  const isOne = first === second;
  return new InvalidLockOptionsError(
    `Two objects ${isOne ? 'of one class' : `of the classes ${first.name} and ${second.name}`} have ${what}. They would ` +
      "take each other's ticks, so for each tick only one of the objects would run. If one object is enough, provide " +
      `${isOne ? 'the class in one module, and export it there' : 'one of the classes only'}. For one job per ` +
      'object, remove the decorator, and add each job under a name of its own with SingletonJobs.add.',
    'name',
  );
}

/** The scheduler calls the placeholder of a transient provider: an object whose constructor has not run. */
function ofTransient({ where }: FoundJob): InvalidLockOptionsError {
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
    `The singleton job ${method} of a mixin has no name. mixin() calls the class ${quote(className)}, and something ` +
      'else in each process, so every instance would run each tick. Give the job a name.',
    'name',
  );
}

/** A decorator of `@nestjs/schedule` above takes the place of the schedule. */
function checkIsScheduled({ decorator, scheduling }: SingletonJob, method: object, where: string): void {
  const now = schedulingOf(method);
  if ([...now].every(([key, value]) => scheduling.get(key) === value)) return;
  throw new InvalidLockOptionsError(
    `${where}: another decorator of @nestjs/schedule stands above @${decorator}, and takes the place of its schedule. ` +
      'Leave one of them out.',
    'decorator',
  );
}

function describeJobs(jobs: readonly string[]): string {
  return `${jobs.length === 1 ? 'the singleton job' : `${jobs.length} singleton jobs`} ${quoteSome(jobs)}`;
}

/**
 * The metadata in which decorators of Nest keep the dependencies of a class that its constructor does not declare by
 * types.
 */
const OF_PARAMETERS = 'self:paramtypes';
const OF_PROPERTIES = 'self:properties_metadata';

/**
 * Finds the providers that are made for each request, also by their dependencies. It goes by declarations: Nest knows
 * it, and caches its answer, only when it has looked for all of their dependencies. If modules have different providers
 * of one token, it counts all of them.
 */
class RequestScope {
  readonly #byToken = new Map<InjectionToken, InstanceWrapper[]>();

  constructor(wrappers: readonly InstanceWrapper[]) {
    for (const wrapper of wrappers) entryOf(this.#byToken, wrapper.token, () => []).push(wrapper);
  }

  has(wrapper: InstanceWrapper): boolean {
    const reached = new Set([wrapper]);
    for (const each of reached) {
      if (each.scope === Scope.REQUEST) return true;
      for (const token of dependenciesOf(each)) {
        for (const found of this.#byToken.get(token) ?? []) reached.add(found);
      }
    }
    return false;
  }
}

function dependenciesOf({ inject, metatype }: InstanceWrapper): InjectionToken[] {
  if (inject) return inject.map((each) => tokenOf(isObject(each) && 'token' in each ? each.token : each));
  if (typeof metatype !== 'function') return [];
  const declared = (key: string): unknown[] => (Reflect.getMetadata(key, metatype) as unknown[] | undefined) ?? [];
  return [
    ...declared('design:paramtypes'),
    ...declared(OF_PARAMETERS).map((each) => (each as { readonly param: unknown }).param),
    ...declared(OF_PROPERTIES).map((each) => (each as { readonly type: unknown }).type),
  ].map(tokenOf);
}

function tokenOf(dependency: unknown): InjectionToken {
  const isForward = isObject(dependency) && 'forwardRef' in dependency;
  return (isForward ? (dependency as ForwardReference).forwardRef() : dependency) as InjectionToken;
}
