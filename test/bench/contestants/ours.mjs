// The built package, as an application has it.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { RedisLockModule, RedisLockService } from '../../../dist/esm/index.js';

/** Nobody times out. */
const PATIENT = { waitMs: 60_000 };

/** @param {object} tuning options of `forRoot`, such as `cohort` */
export async function connect(url, tuning = {}) {
  const module = RedisLockModule.forRoot({ connection: url, ...tuning });
  // A bad option has to be an error here, not the end of the process.
  const app = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
  const locks = app.get(RedisLockService);
  return {
    locks,
    acquire: (resource) => locks.acquire(resource, PATIENT),
    release: (lease) => lease.release(),
    close: () => app.close(),
  };
}
