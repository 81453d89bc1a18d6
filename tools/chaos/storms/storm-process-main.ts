// A process of a storm: many clients, each with connections of its own, and each waits for every resource.
// Started by storm-fleet.ts, with StormSetup as JSON in STORM_PROCESS, and an IPC channel to the harness.
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { LockError } from '../../../lib/kernel/api/errors.js';
import type { Lease } from '../../../lib/kernel/api/lease.js';
import type { RedisLockService } from '../../../lib/nest/redis-lock.service.js';
import { createLockService } from '../../../lib/nest/module/create-lock-service.js';
import { resolveModuleOptions } from '../../../lib/nest/module/module-options.js';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import { HistoryLog } from '../history/history-log.js';
import type { StormMessage, StormSetup } from './storm-fleet.js';

const setup = JSON.parse(process.env['STORM_PROCESS']!) as StormSetup;
const { name, connection, clients, resources, leaseMs, holdMs } = setup;
const log = new HistoryLog(setup.history, name);
const tell = (message: StormMessage): void => void process.send!(message);
let calls = 0;
// Warnings of waits that take long and of releases that fail: what a storm is made of.
Logger.overrideLogger(false);

for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, (error: unknown) => log.crash(event, error));
}

/** Waits for a resource, holds it for a moment, and begins anew. */
async function work(locks: RedisLockService, resource: string): Promise<void> {
  for (;;) {
    const call = `${name}/${++calls}`;
    log.say({
      type: 'invoke',
      op: 'acquire',
      call,
      resources: [resource],
      mode: 'exclusive',
      leaseMs,
      queues: true,
    });
    try {
      const lease = await locks.acquire(resource, { waitMs: Infinity });
      await hold(lease, call);
    } catch (error) {
      const { code, message } = error instanceof LockError ? error : { code: null, message: String(error) };
      log.say({ type: 'unknown', op: 'acquire', call, code, why: message });
      tell({ type: 'failed', why: message });
      await sleep(100 + 400 * Math.random());
    }
  }
}

async function hold(lease: Lease, call: string): Promise<void> {
  const at = machineNow();
  log.say({ type: 'ok', op: 'acquire', call, at, tokens: [lease.fencingToken], until: at + lease.remainingMs() });
  tell({ type: 'granted', resource: lease.resource });
  await sleep(holdMs);
  log.say({ type: 'invoke', op: 'release', call });
  await lease.release().then(
    () => log.say({ type: 'ok', op: 'release', call }),
    () => log.say({ type: 'unknown', op: 'release', call }),
  );
}

/** As a fleet that is rolled out: nothing but the machine spreads them. */
function start(): void {
  for (let client = 0; client < clients; client++) {
    const options = { connection, leaseMs, instanceId: `${name}-${client}` };
    void createLockService(resolveModuleOptions(options)).then((locks) => {
      for (const resource of resources) void work(locks, resource);
    });
  }
}

process.once('message', start);
tell({ type: 'ready' });
