import type { INestApplicationContext } from '@nestjs/common';
import { checkResource, jobResource } from '../../../kernel/api/resource.js';
import { Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { nearest } from '../../../kernel/api/nearest.js';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { settle } from '../../../kernel/util/promises.js';
import type { Job } from '../nest/run-job.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import { DEFAULT_NAME, getRedisLockToken, partsOf } from '../../../nest/service-parts.js';
import type { FleetPlace } from '../../../testing/fleet/test-fleet.js';
import type { TestInstance } from '../../../testing/fleet/test-instance.js';
import { TestKitError } from '../../../testing/fleet/test-kit-error.js';
import { account, type Ending, fire, type FiredJob, firedTicksOf, nextTick, type WhySkipped, crash } from './firing.js';

/** A job, on one application. */
interface JobHere {
  readonly instance: TestInstance;
  readonly job: Job;
}

/**
 * The singleton jobs of a fleet, under the control of a test. Firing a tick doesn't advance the clock, so a tick may be
 * due in the future.
 */
export class TestJobs {
  readonly #place: FleetPlace;

  /** @internal */
  constructor(place: FleetPlace) {
    this.#place = place;
  }

  /**
   * Runs a job once on one application, as its timer would: the run claims the tick, and passes through all decorators
   * of the method. Without `tick`, each call runs the next tick.
   *
   * @returns the result of the method
   * @throws the error of the job
   * @throws TestKitError with the code `notRun`, and the reason, if the tick did not run; with `unknownJob` if there is
   *   no such job; with `invalid` if an option cannot work
   * @throws InvalidLockOptionsError if an option is invalid
   */
  async run(name: string, options: RunJobOptions = {}): Promise<unknown> {
    RUN_JOB_OPTIONS.check('jobs.run', options);
    const { tick: given, attempt = 1, as } = options;
    const here = this.#found(name, this.#instance(as));
    const tick = given === undefined ? this.#next(name, here.job) : this.#noted(name, tickText(name, here.job, given));
    if (attempt > 1) await this.#crash(name, here, tick, attempt);
    const ending = await this.#fire(name, here, tick);
    if ('error' in ending) throw ending.error;
    if (ending.ran) return ending.result;
    throw notRun(name, tick, here.instance.instanceId, ending.reason);
  }

  /**
   * Fires the next tick of a job on all applications of the fleet that have the job, as their timers would: one of them
   * runs it. Each call fires another tick.
   *
   * @returns the application that ran it, and what the others did
   * @throws the error of the job
   * @throws TestKitError with the code `unknownJob` if there is no such job
   */
  async tick(name: string): Promise<FiredJob> {
    const fleet = this.#fleet();
    const all = fleet.flatMap((instance) => this.#find(name, instance) ?? []);
    const [first] = all;
    if (!first) throw this.#unknownJob(name, 'The fleet', fleet);
    const tick = this.#next(name, first.job);
    const endings = new Map<TestInstance, Ending>();
    let hasRun = (): void => {};
    const ran = new Promise<void>((resolve) => (hasRun = resolve));
    const fired = all.map(async (here) => {
      const ending = await this.#fire(name, here, tick);
      endings.set(here.instance, ending);
      if (ending.ran) hasRun();
    });
    // With onCrash: 'retry', the others wait for time: they take the tick over if its runner dies.
    await Promise.race([Promise.all(fired), ran]);
    await settle();
    const failed = [...endings.values()].find((ending) => 'error' in ending);
    if (failed) throw failed.error;
    return outcomeOf(tick, all, endings);
  }

  async #fire(name: string, { instance, job }: JobHere, tick: string): Promise<Ending> {
    const ending = await fire(instance.injected as RedisLockService, name, job, tick);
    // Once its time has passed, it is no missed tick.
    if (ending.ran && job.schedule) account(instance.server, jobResource(name), tick);
    return ending;
  }

  #fleet(): TestInstance[] {
    const { fleet, instance } = this.#place;
    return fleet.instances.filter(({ service }) => service === instance.service);
  }

  #find(name: string, instance: TestInstance): JobHere | undefined {
    const job = partsOf(instance.injected)?.ownJobs?.find(name) as Job | undefined;
    return job && { instance, job };
  }

  #found(name: string, instance: TestInstance): JobHere {
    const found = this.#find(name, instance);
    if (found) return found;
    throw this.#unknownJob(name, `The application ${quote(instance.instanceId)}`, [instance]);
  }

  #unknownJob(name: string, where: string, instances: readonly TestInstance[]): TestKitError {
    const { fleet, instance } = this.#place;
    const other = fleet.instances.find((each) => each.service !== instance.service && this.#find(name, each));
    return other ? ofOtherService(name, other.service) : unknownJob(name, where, instances);
  }

  #instance(as: RunJobOptions['as']): TestInstance {
    if (as === undefined) return this.#place.instance;
    const fleet = this.#fleet();
    const meant = typeof as === 'string' ? undefined : serviceOf(as, this.#place.instance.service);
    const isMeant = (each: TestInstance): boolean =>
      meant === undefined ? each.instanceId === as : each.injected === meant;
    const found = fleet.find(isMeant);
    if (found) return found;
    const what = typeof as === 'string' ? quote(as) : 'an application that is not of this fleet';
    const names = fleet.map(({ instanceId }) => instanceId);
    throw new TestKitError('invalid', `as of jobs.run is ${what}. The fleet has these: ${quoteSome(names, 20)}.`);
  }

  #next(name: string, job: Job): string {
    const { fleet } = this.#place;
    return this.#noted(name, nextTick(this.#ticks(name), job, fleet.clock.wallNow()));
  }

  #noted(name: string, tick: string): string {
    this.#ticks(name).texts.add(tick);
    return tick;
  }

  #ticks(name: string): ReturnType<typeof firedTicksOf> {
    const { fleet, instance } = this.#place;
    return firedTicksOf(fleet, JSON.stringify([instance.service, name]));
  }

  async #crash(name: string, { instance, job }: JobHere, tick: string, attempt: number): Promise<void> {
    if (job.options.onCrash !== 'retry') {
      throw new TestKitError(
        'invalid',
        `jobs.run(${quote(name)}, { attempt: ${attempt} }) needs a job with onCrash: 'retry'. This one has 'skip', so ` +
          'no instance runs a tick again after a crash.',
      );
    }
    if (attempt > job.options.maxReruns + 1) throw notRun(name, tick, instance.instanceId, 'crashed');
    const refused = await crash(instance.server, { resource: jobResource(name), tick }, attempt);
    if (refused === 'finished') throw notRun(name, tick, instance.instanceId, 'claimed');
    if (refused !== undefined) throw notRun(name, tick, instance.instanceId, 'overlap');
  }
}

function serviceOf(app: Pick<INestApplicationContext, 'get'>, name: string): object | undefined {
  try {
    return app.get<object>(getRedisLockToken(name), { strict: false });
  } catch {
    return undefined;
  }
}

function outcomeOf(tick: string, all: readonly JobHere[], endings: ReadonlyMap<TestInstance, Ending>): FiredJob {
  let ranOn: string | undefined;
  let result: unknown;
  const skipped: FiredJob['skipped'][number][] = [];
  for (const { instance } of all) {
    const ending = endings.get(instance);
    const { instanceId } = instance;
    if (ending === undefined) skipped.push({ instanceId: instanceId, reason: 'standsBy' });
    else if ('reason' in ending) skipped.push({ instanceId: instanceId, reason: ending.reason });
    else if ('result' in ending) [ranOn, result] = [instanceId, ending.result];
  }
  return { tick, ranOn, result, skipped };
}

/** Every form of a cron job's time is the same tick. */
function tickText(name: string, job: Job, given: string): string {
  const text = checkResource(given, 'jobs.run as its tick');
  if (!job.schedule) return text;
  const at = Date.parse(text);
  if (!Number.isNaN(at)) return new Date(at).toISOString();
  throw new TestKitError(
    'invalid',
    `tick of jobs.run(${quote(name)}) must be an ISO 8601 time, like run.tick, not ${quote(text)}.`,
  );
}

function ofOtherService(name: string, service: string): TestKitError {
  const call = service === DEFAULT_NAME ? 'testLocks(app).jobs' : `testLocks(app, ${quote(service)}).jobs`;
  return new TestKitError(
    'unknownJob',
    `The job ${quote(name)} uses the lock service ${quote(service)}: call ${call}.`,
  );
}

function unknownJob(name: string, where: string, instances: readonly TestInstance[]): TestKitError {
  const known = instances.flatMap(({ injected }) => partsOf(injected)?.ownJobs?.names() ?? []);
  const near = nearest(name, known);
  const hint =
    near !== undefined
      ? `Did you mean ${quote(near)}?`
      : known.length > 0
        ? `It has: ${quoteSome(known.toSorted())}.`
        : 'It has no jobs. Call app.init() first: the jobs of an application are found when it starts.';
  return new TestKitError('unknownJob', `${where} has no job called ${quote(name)}. ${hint}`);
}

const WHY: Readonly<Record<WhySkipped, string>> = {
  claimed: 'it has run already, or another instance runs it. Leave tick out: then each call runs the next one.',
  overlap: 'an earlier run of the job has not ended. Let it end first.',
  paused: 'the job is paused. Call resume() of SingletonJobs first.',
  crashed: 'its job allows fewer attempts. Raise maxReruns of the job, or lower attempt.',
  otherDate: 'the job is registered for another date. Give the job the same date on all applications.',
  late: 'it is too late. Leave tick out.',
  early: 'it is due too far ahead. Leave tick out.',
  standsBy: 'another instance runs it. Let that one end first.',
  notReached: 'a decorator above the job decorator did not call the method. Check what that decorator does.',
  closed: 'the application closes. Run jobs before app.close().',
};

function notRun(name: string, tick: string, instance: string, reason: WhySkipped): TestKitError {
  return new TestKitError(
    'notRun',
    `The tick ${quote(tick)} of ${quote(name)} did not run on ${quote(instance)}: ${WHY[reason]}`,
  );
}

/** Options of `jobs.run()`. */
interface RunJobOptions {
  /**
   * The tick to run, like `run.tick`: for a cron job, an ISO time; for an interval or a timeout, any text.
   *
   * @allowed text
   * @default the next tick of the job that this fleet has not run
   */
  tick?: string;
  /**
   * The number of this attempt to run the tick. 2 simulates that another instance has started this tick and died.
   * Values above 1 need a job with `onCrash: 'retry'`.
   *
   * @allowed 1 to the job's `maxReruns` + 1
   * @default 1
   */
  attempt?: number;
  /**
   * The application that runs the job. It must be in the same fleet.
   *
   * @allowed the application, or its `instanceId`
   * @default the application that `locks` belongs to
   */
  as?: string | Pick<INestApplicationContext, 'get'>;
}

export const RUN_JOB_OPTIONS = new OptionTable({
  tick: Option.checked<string>(),
  attempt: Option.atLeast(1, 'runs', 101).default(1),
  as: Option.checked<string | Pick<INestApplicationContext, 'get'>>(),
} satisfies OptionsOf<RunJobOptions>);
