// Many jobs that are due at one second, in one process: as `cron` runs them, and as ours are added and decorated.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { RedisLockModule } from '../../../dist/esm/index.js';
import { SingletonCron, SingletonJobs } from '../../../dist/esm/schedule.js';
import { ADDED, DECORATED, PLAIN } from './jobs-at-once-names.mjs';

/** Long enough for the start of the application and a look of its at the jobs. */
const AHEAD_MS = 6_000;

const METHODS = { [PLAIN]: addPlain, [ADDED]: addOurs, [DECORATED]: () => {} };

/**
 * @param {{ kind: string, jobs: number }} args
 * @returns the processor time of the tick, and of its longest turn of the event loop
 */
export async function run({ url }, { kind, jobs }) {
  const at = new Date(Math.ceil((Date.now() + AHEAD_MS + 4 * jobs) / 1_000) * 1_000);
  const cron = `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
  const runs = new Runs(jobs);
  const names = Array.from({ length: jobs }, (_, index) => `${kind} ${index} of ${jobs}`);
  class AppModule {}
  Module({
    imports: [ScheduleModule.forRoot(), RedisLockModule.forRoot({ connection: url })],
    providers: kind === DECORATED ? [classOf(names, cron, runs)] : [],
  })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  METHODS[kind](app, names, cron, runs);
  // Adding them takes time too, which counts in neither.
  await sleep(at.getTime() - 500 - Date.now());
  const before = cpuMs();
  const turns = longestTurn();
  await runs.over;
  // Leaves time for the releases after the last run.
  await sleep(250);
  const result = { cpuMs: cpuMs() - before, longestTurnMs: turns.end() };
  await app.close();
  return result;
}

function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** The most processor time that was used between two calls of a timer: on a busy machine, waiting for a core is no turn. */
function longestTurn() {
  let longest = 0;
  let last = cpuMs();
  const timer = setInterval(() => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  return {
    end() {
      clearInterval(timer);
      return longest;
    },
  };
}

/** Counts the runs of all jobs. */
class Runs {
  #left;
  #events = new EventTarget();

  constructor(jobs) {
    this.#left = jobs;
    this.over = once(this.#events, 'over');
  }

  count() {
    if (--this.#left === 0) this.#events.dispatchEvent(new Event('over'));
  }
}

/** A job for each method, as a compiler makes it. */
function classOf(names, cron, runs) {
  class Jobs {}
  for (const name of names) {
    const method = { value: async () => runs.count(), configurable: true, writable: true };
    const descriptor = SingletonCron(cron, { name, timeZone: 'UTC' })(Jobs.prototype, name, method) ?? method;
    Object.defineProperty(Jobs.prototype, name, descriptor);
  }
  return Jobs;
}

function addPlain(app, names, cron, runs) {
  for (const name of names) {
    const job = CronJob.from({ cronTime: cron, timeZone: 'UTC', onTick: () => runs.count(), start: true });
    app.get(SchedulerRegistry).addCronJob(name, job);
  }
}

function addOurs(app, names, cron, runs) {
  for (const name of names) app.get(SingletonJobs).add({ name, cron, timeZone: 'UTC' }, async () => runs.count());
}
