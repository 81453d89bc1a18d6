import { isDate } from 'node:util/types';
import 'reflect-metadata';
import type { DiscoveryService } from '@nestjs/core';
import type { SchedulerRegistry } from '@nestjs/schedule';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { describeValue } from '../../../kernel/api/validation.js';
import { inRootContext } from '../../../kernel/util/async-contexts.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { CronTimeLike } from './next-tick.js';

/** When a job of the package `cron` is due, as the application states it. */
export interface StatedSchedule {
  readonly cronTime: unknown;
  readonly timeZone?: string | undefined;
  readonly utcOffset?: number | undefined;
}

/** The origin of a schedule, for messages, and the name of its option. */
export interface StatedAt {
  readonly where: string;
  readonly option: string;
}

export function cronJobOf(
  cronJobs: CronJobClass | undefined,
  place: StatedAt,
  source: Parameters<CronJobClass['from']>[0],
): CronJobLike {
  if (!cronJobs) {
    throw new InvalidLockOptionsError(
      `${place.where} finds no class for cron jobs in this version of @nestjs/schedule. Use intervalMs, or @SingletonCron.`,
      place.option,
    );
  }
  checkCronTime(source, place);
  try {
    return cronJobs.from(source);
  } catch (error) {
    throw invalidSchedule(source, place, error);
  }
}

/**
 * Gives a cron job of the scheduler another time. A job that is stopped stays so, unless it was due at a date.
 *
 * @throws InvalidLockOptionsError when it cannot be right; then the job keeps its time
 */
export function setCronTime(job: CronJobLike, schedule: StatedSchedule, place: StatedAt): void {
  // An expression may have no tick at all, such as February 30, and a date may be over.
  const cronTime = parseCronTime(job.cronTime.constructor as CronTimeClass, schedule, place, (time) => time.sendAt());
  const isToStart = job.isActive || job.cronTime.realDate;
  inRootContext(() => {
    keepDate(cronTime);
    job.setTime(cronTime);
    // `setTime` sets it for a date, and leaves it for an expression after that.
    job.runOnce = cronTime.realDate;
    if (isToStart && !job.isActive) job.start();
  });
}

/**
 * Parses a schedule as the scheduler does.
 *
 * @param check throws what else is wrong with it
 * @throws InvalidLockOptionsError when it cannot be right
 */
export function parseCronTime(
  CronTime: CronTimeClass,
  schedule: StatedSchedule,
  place: StatedAt,
  check: (cronTime: TimerTime) => unknown,
): TimerTime {
  checkCronTime(schedule, place);
  const { cronTime: source, timeZone = null, utcOffset = null } = schedule;
  try {
    const cronTime = new CronTime(source, timeZone, utcOffset);
    check(cronTime);
    return cronTime;
  } catch (error) {
    throw invalidSchedule(schedule, place, error);
  }
}

/**
 * Makes the job of a date read the time left once more when its timer fires early. If the date has passed by then, the
 * package `cron` would throw in the timer, which ends the process.
 */
export function keepDate(cronTime: TimerTime): void {
  if (!cronTime.realDate) return;
  const getTimeout = cronTime.getTimeout.bind(cronTime);
  cronTime.getTimeout = () => {
    try {
      return getTimeout();
    } catch {
      return 0;
    }
  };
}

/** Returns the error for a schedule that the package `cron` refuses, with its message about the invalid field. */
export function invalidSchedule(schedule: StatedSchedule, { where, option }: StatedAt, cause: unknown): Error {
  const [why = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n', 1);
  const { cronTime, timeZone } = schedule;
  const zone = timeZone === undefined ? '' : ` in the time zone ${quote(timeZone, 60)}`;
  const message =
    `${option} of ${where} cannot be scheduled: ${describeTime(cronTime)}${zone}. ` +
    `The package cron reports: ${quote(why, 200)}.`;
  return new InvalidLockOptionsError(message, /time ?zone/i.test(why) ? 'timeZone' : option, { cause });
}

function checkCronTime({ cronTime, timeZone }: StatedSchedule, { where, option }: StatedAt): void {
  // The package `cron` takes it for none.
  if (timeZone === '') {
    throw new InvalidLockOptionsError(
      `${option} of ${where} cannot be scheduled: its timeZone is ''. Name a zone, such as Europe/Vienna, or leave ` +
        `timeZone out to use the zone of the process.`,
      'timeZone',
    );
  }
  if (typeof cronTime === 'string' || Number.isFinite(timeOf(cronTime))) return;
  throw new InvalidLockOptionsError(
    `${option} of ${where} cannot be scheduled: ${describeTime(cronTime)}. ` +
      'It must be a cron expression, a Date or a DateTime of luxon.',
    option,
  );
}

/** The milliseconds of a Date, or of a DateTime of luxon. */
export function timeOf(value: unknown): number | undefined {
  const ms = isDate(value) ? value.getTime() : (value as { toMillis?: () => unknown } | null | undefined)?.toMillis?.();
  return typeof ms === 'number' && !Number.isNaN(ms) ? ms : undefined;
}

/** Describes a date or the text of a schedule for a message. */
export function describeTime(value: unknown): string {
  if (typeof value === 'string') return quote(value, 200);
  if (!isDate(value)) return describeValue(value);
  return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString();
}

/** The methods that the timer of a cron job calls. */
export interface TimerTime extends CronTimeLike {
  /** @returns the milliseconds until the next tick. @throws for a date that has passed */
  getTimeout(): number;
  /** @returns the next due time. @throws if there is none */
  sendAt(): unknown;
}

/** A schedule as the package `cron` parses it. It refuses what it cannot. */
export type CronTimeClass = new (source: unknown, timeZone?: string | null, utcOffset?: number | null) => TimerTime;

/** The part of `CronJob` that is needed here, of the package `cron`. */
export interface CronJobLike {
  readonly cronTime: TimerTime;
  readonly isActive: boolean;
  /** `true` if it stops after its next tick. */
  runOnce: boolean;
  start(): void;
  stop(): unknown;
  setTime(time: unknown): void;
}

interface CronJobClass {
  /** @param source what a job of the package `cron` is made of */
  from(source: StatedSchedule & { readonly name?: string; readonly onTick: () => unknown }): CronJobLike;
}

/** The scheduler's mount of decorated jobs. It is a provider, but not exported. */
interface Orchestrator {
  addCron(work: () => void, options: { name: string; cronTime: string; disabled: true }): void;
  mountCron(): void;
}

const PROBE = 'probe';

/**
 * Finds the class `CronJob`. The package `cron` is a dependency of `@nestjs/schedule` and not of this package, so it
 * cannot be imported. But any job in the registry is of that class. If there is none, the scheduler makes one.
 *
 * @returns `undefined` for a version of `@nestjs/schedule` that does it in another way
 */
export function cronJobClass(registry: SchedulerRegistry, discovery: DiscoveryService): CronJobClass | undefined {
  for (const job of registry.getCronJobs().values()) {
    const found = classOf(job);
    if (found) return found;
  }
  const orchestrator = discovery.getProviders().find(({ name }) => name === 'SchedulerOrchestrator')?.instance as
    | object
    | undefined;
  const job = orchestrator && makeProbe(orchestrator.constructor, registry.constructor);
  return job && classOf(job);
}

/**
 * Finds the class `CronTime` before there is an application, so that a schedule is checked when its class is defined.
 *
 * @returns `undefined` for a version of `@nestjs/schedule` that does it in another way
 */
export function cronTimeClass(scheduleModule: object, registry: object): CronTimeClass | undefined {
  const providers = (Reflect.getMetadata('providers', scheduleModule) ?? []) as unknown[];
  const orchestrator = providers.find(
    (each): each is object => typeof each === 'function' && 'mountCron' in Object(each.prototype),
  );
  return orchestrator && (makeProbe(orchestrator, registry)?.cronTime.constructor as CronTimeClass | undefined);
}

/** A job that the scheduler makes in a registry of its own, and does not start. */
function makeProbe(orchestrator: object, registry: object): CronJobLike | undefined {
  try {
    const ownRegistry = new (registry as new () => SchedulerRegistry)();
    const own = new (orchestrator as new (registry: SchedulerRegistry) => Orchestrator)(ownRegistry);
    own.addCron(() => {}, { name: PROBE, cronTime: '* * * * * *', disabled: true });
    own.mountCron();
    return ownRegistry.getCronJob(PROBE) as unknown as CronJobLike;
  } catch {
    return undefined;
  }
}

function classOf(job: object): CronJobClass | undefined {
  const found = job.constructor as unknown as Partial<CronJobClass>;
  return typeof found.from === 'function' ? (found as CronJobClass) : undefined;
}
