// One step of one operation, so that the parent decides when it happens, and counts what it sends.
import { Redis } from 'ioredis';
import { nowNs } from '../measure/clock.mjs';
import { connect } from './operations/client.mjs';
import { decorated } from './operations/decorated-methods.mjs';
import { ofAJob } from './operations/of-a-job.mjs';
import { ofALease } from './operations/of-a-lease.mjs';
import { ofTwo } from './operations/of-two.mjs';

/**
 * @typedef {object} Operation
 * @property {(client: object, kept: object) => unknown} [prepare] what comes before it
 * @property {(client: object, kept: object) => unknown} run what is measured
 * @property {(client: object, kept: object) => unknown} [wait] in another process, begun before `run`, which lets it end:
 *   what is measured is until then
 * @property {(client: object, kept: object, result: unknown) => unknown} [end] leaves nothing behind
 */

/** @type {Record<string, Operation>} in the order of the report */
const OPERATIONS = { ...ofALease, ...decorated, ...ofAJob, ...ofTwo };

/**
 * @param {object} args
 * @param {'names' | 'ping' | 'prepare' | 'run' | 'wait' | 'end' | 'close'} args.step
 * @param {string} args.operation
 * @param {string} args.resource what this operation works with; `kept` is what its steps leave for each other
 */
export async function run(world, { step, operation, resource, tuning }) {
  if (step === 'names') return Object.entries(OPERATIONS).map(([name, { wait }]) => ({ name, isOfTwo: Boolean(wait) }));
  if (step === 'ping') return ping(world, tuning);
  if (step === 'close') return close(world);
  const client = await clientOf(world, tuning);
  const steps = OPERATIONS[operation];
  const key = `operation ${resource}`;
  if (!world.kept.has(key)) world.kept.set(key, { resource });
  const kept = world.kept.get(key);
  const startedAt = nowNs();
  const result = await steps[step]?.(client, kept, kept.result);
  const endedAt = nowNs();
  if (step === 'run' || step === 'wait') kept.result = result;
  if (step === 'end') world.kept.delete(key);
  return { startedAt, endedAt };
}

function clientOf({ kept, url }, tuning) {
  if (!kept.has('client')) kept.set('client', connect(url, tuning));
  return kept.get('client');
}

async function close({ kept }) {
  kept.get('ping')?.disconnect();
  await (await kept.get('client'))?.close();
}

/** Nanoseconds of a round trip to the first server. */
async function ping({ kept, url }, { quorum = [url], cluster = quorum } = {}) {
  if (!kept.has('ping')) kept.set('ping', new Redis(cluster[0]));
  const startedAt = nowNs();
  await kept.get('ping').ping();
  return { startedAt, endedAt: nowNs() };
}
