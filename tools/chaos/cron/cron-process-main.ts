// The program of a CronWorker (cron-fleet.ts): an application that fires jobs by its wall clock, from the first message
// of its parent to the second. `node --import skewed-clock.mjs` skews that clock. Logs synchronously, so each line is
// in the file before the next statement runs.
import 'reflect-metadata';
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import { LEASE_MS, MAX_CLOCK_SKEW_MS, REAL_JOBS, type RealJob } from './real-jobs.js';
import type { TickLine } from './tick-log.js';

/** The work of the process. */
export interface CronWorkerSetup {
  readonly name: string;
  readonly url: string;
  readonly keyPrefix: string;
  readonly logFile: string;
}

const setup = JSON.parse(process.argv[2]!) as CronWorkerSetup;
const log = openSync(setup.logFile, 'a');
const underWay = new Set<Promise<void>>();
let calls = 0;
let isStopping = false;

function write(line: TickLine): void {
  writeSync(log, `${JSON.stringify(line)}\n`);
}

@Module({
  imports: [
    RedisLockModule.forRoot({ connection: setup.url, keyPrefix: setup.keyPrefix, shutdown: { drainMs: 1_000 } }),
  ],
})
class CronModule {}

const app = await NestFactory.createApplicationContext(CronModule, { logger: ['error'] });
const locks = app.get(RedisLockService);
/** The ticks that were refused as late, by their job, until their call has ended. */
const late = new Set<string>();
locks.observe((event) => {
  if (event.type === 'tickSkipped' && event.reason === 'late') late.add(`${event.job} ${event.tick}`);
});

async function fire({ name: job, overlap, onCrash, longestRunMs, isJudged }: RealJob, at: number): Promise<void> {
  const call = ++calls;
  const line = () => ({ on: setup.name, call, at: machineNow() });
  const tick = new Date(at).toISOString();
  const due = isJudged ? { at, maxClockSkewMs: MAX_CLOCK_SKEW_MS } : undefined;
  const lock = { leaseMs: LEASE_MS, waitMs: 20_000, attemptTimeoutMs: 500 };
  write({ type: 'fired', ...line(), job, tick });
  try {
    await locks.runSingleton(
      { job, tick, overlap, onCrash, claimTtlMs: 60_000, lock, due },
      async (lease, { rerun }) => {
        // The time first: what is left of the lease then is at least what it says after that.
        const start = { type: 'start', ...line(), rerun, token: lease.fencingToken } as const;
        write({ ...start, remainingMs: lease.remainingMs() });
        await sleep(((1 + Math.random()) / 2) * longestRunMs);
        const end = { type: 'end', ...line() } as const;
        write({ ...end, remainingMs: lease.remainingMs() });
      },
    );
    write({ type: 'done', ...line(), ...(late.delete(`${job} ${tick}`) && { isLate: true }) });
  } catch (error) {
    write({ type: 'done', ...line(), error: String(error) });
  }
}

function schedule(job: RealJob): void {
  const { everyMs } = job;
  setTimeout(
    () => {
      if (isStopping) return;
      const fired = fire(job, Math.floor(Date.now() / everyMs) * everyMs);
      underWay.add(fired);
      void fired.finally(() => underWay.delete(fired));
      schedule(job);
    },
    everyMs - (Date.now() % everyMs),
  );
}

process.once('message', () => {
  for (const job of REAL_JOBS) schedule(job);
  process.once('message', () => {
    isStopping = true;
    void Promise.all(underWay)
      .then(() => app.close())
      .then(() => process.removeAllListeners('disconnect').disconnect());
  });
});
// Its parent has died, and nothing else would end it.
process.on('disconnect', () => process.exit());
process.send!('ready');
