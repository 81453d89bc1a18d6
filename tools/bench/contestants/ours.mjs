// The built package, as an application has it.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import * as built from '../../../dist/esm/index.js';

/** Nobody times out. */
const PATIENT = { waitMs: 60_000 };
const TO_READ = { ...PATIENT, mode: 'read' };
const TO_WRITE = { ...PATIENT, mode: 'write' };

function optionsOf(url, { cluster, natMap, ...tuning }) {
  // Fresh servers of a benchmark have forgotten nothing.
  if (tuning.quorum) return { restartQuarantineMs: 0, ...tuning, quorum: { connections: tuning.quorum } };
  return { connection: cluster ? { cluster, ...(natMap && { natMap }) } : url, ...tuning };
}

/** @param {object} tuning options of `forRoot`, such as `localHandOvers` */
export function connect(url, tuning = {}) {
  return connectTo(built, url, tuning);
}

/** An application, as connect() has it, with providers of its own. */
export function openApplication({ RedisLockModule }, url, tuning, providers = []) {
  const module = { module: Application, imports: [RedisLockModule.forRoot(optionsOf(url, tuning))], providers };
  // A bad option has to be an error here, not the end of the process.
  return NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
}

class Application {}

/** The same for any build of the package, such as that of an earlier commit. */
export async function connectTo(build, url, tuning = {}) {
  const app = await openApplication(build, url, tuning);
  const locks = app.get(build.RedisLockService);
  const release = (lease) => lease.release();
  const semaphores = new Map();
  const semaphoreOf = (resource, permits) => {
    if (!semaphores.has(resource)) semaphores.set(resource, locks.semaphore(resource, { permits }));
    return semaphores.get(resource);
  };
  return {
    locks,
    acquire: (resource) => locks.acquire(resource, PATIENT),
    acquireAll: (resources) => locks.acquire(resources, PATIENT),
    acquireToRead: (resource) => locks.acquire(resource, TO_READ),
    acquireToWrite: (resource) => locks.acquire(resource, TO_WRITE),
    semaphore: (permits) => ({ acquire: (resource) => semaphoreOf(resource, permits).acquire(PATIENT), release }),
    release,
    close: () => app.close(),
  };
}
