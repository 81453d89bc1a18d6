// The built package, as an application has it.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import * as built from '../../../dist/esm/index.js';

/** Long enough that no call times out. */
const PATIENT = { waitMs: 60_000, unavailableMs: 60_000 };

class Application {}

/**
 * @param {object} tuning options of `forRoot`; `asShipped`: a call waits as long as these do; `call`: `plain` acquires
 *   without options, `using` runs work under the lock
 */
export function connect(url, tuning = {}) {
  return connectTo(built, url, tuning);
}

/** The same for any build of the package, such as an earlier commit. */
export async function connectTo({ RedisLockModule, RedisLockService }, url, { asShipped, call, ...tuning } = {}) {
  const module = { module: Application, imports: [RedisLockModule.forRoot({ connection: url, ...tuning })] };
  // A bad option has to be an error here, not the end of the process.
  const app = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
  const locks = app.get(RedisLockService);
  const close = () => app.close();
  const release = (lease) => lease.release();
  if (call === 'plain') return { acquire: (resource) => locks.acquire(resource), release, close };
  if (call === 'using') return { using: (resource, work) => locks.using(resource, PATIENT, work), close };
  return { acquire: (resource) => locks.acquire(resource, asShipped ? {} : PATIENT), release, close };
}
