// The built package, as an application has it.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import * as built from '../../../dist/esm/index.js';

/** Long enough that no call times out. */
const PATIENT = { waitMs: 60_000, unavailableMs: 60_000 };

class Application {}

/** @param {object} tuning options of `forRoot`; `asShipped`: a call waits as long as these do */
export function connect(url, tuning = {}) {
  return connectTo(built, url, tuning);
}

/** The same for any build of the package, such as an earlier commit. */
export async function connectTo({ RedisLockModule, RedisLockService }, url, { asShipped = false, ...tuning } = {}) {
  const module = { module: Application, imports: [RedisLockModule.forRoot({ connection: url, ...tuning })] };
  // A bad option has to be an error here, not the end of the process.
  const app = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
  const locks = app.get(RedisLockService);
  return {
    acquire: (resource) => locks.acquire(resource, asShipped ? {} : PATIENT),
    release: (lease) => lease.release(),
    close: () => app.close(),
  };
}
