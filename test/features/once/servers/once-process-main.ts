// What runs in a OnceProcess (once-process.ts).
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { OnceCalls } from '../../../../lib/features/once/core/once-calls.js';
import { RedisResultStore } from '../../../../lib/features/once/redis/redis-result-store.js';
import { LeaseLostError } from '../../../../lib/kernel/api/lease-errors.js';
import { LockClient } from '../../../../lib/kernel/lock-client.js';
import { RedisLockStore } from '../../../../lib/redis/redis-lock-store.js';
import { machineNow } from '../../../support/expect/machine-now.js';
import { lockConnection } from '../../../support/redis/lock-user.js';

/** A run of the work of a key, as a line in a list of the witness. Times are the machine's, equal in all processes. */
export interface Run {
  readonly id: string;
  readonly pid: number;
  readonly beganAt: number;
  /** Not in the line that is written at its begin. */
  readonly endedAt?: number;
  /** The result, as JSON. */
  readonly text?: string;
}

/** A call that has got a result. `lost`: by the error that reports the loss of the lease, as on a machine that is too busy. */
export interface Answered {
  readonly key: string;
  readonly text: string;
  readonly outcome: 'run' | 'hit' | 'wait' | 'lost';
  readonly returnedAt: number;
}

export interface CallsOptions {
  readonly resultTtlMs: number;
  readonly workMs: number;
}

const [url, leaseMs] = [process.argv[2]!, Number(process.argv[3])];
/** Where the work notes what it does. */
const witness = new Redis(url);
const store = new RedisLockStore({
  connection: lockConnection(url),
  keyPrefix: 'lock',
  instanceId: `process-${process.pid}`,
  leaseMs,
});
const locks = new LockClient({ store, defaults: { leaseMs, waitMs: 60_000, unavailableMs: 60_000 } });
const once = new OnceCalls(locks.deps, locks.leases, locks.watches, new RedisResultStore(store));

async function workOn(key: string, workMs: number): Promise<unknown> {
  const begun: Run = { id: randomUUID(), pid: process.pid, beganAt: machineNow() };
  await witness.rpush(`begun:${key}`, JSON.stringify(begun));
  await sleep(workMs);
  const result = { id: begun.id, bytes: randomBytes(24).toString('base64'), umlaut: 'ä€😀' };
  const ended: Run = { ...begun, endedAt: machineNow(), text: JSON.stringify(result) };
  await witness.rpush(`ended:${key}`, JSON.stringify(ended));
  return result;
}

const verbs = {
  /** Makes all of these calls at once. */
  async calls(keys: readonly string[], { resultTtlMs, workMs }: CallsOptions): Promise<Answered[]> {
    const outcomes = new Map<string, Answered['outcome'][]>();
    const stop = locks.observers.add(
      ({ resource, outcome }) => {
        outcomes.set(resource, [...(outcomes.get(resource) ?? []), outcome]);
      },
      ['onceReturned'],
    );
    const call = async (key: string): Promise<Answered> => {
      let lost: LeaseLostError | undefined;
      const result = await once
        .run(key, { resultTtlMs }, () => workOn(key, workMs))
        .catch((error: unknown) => {
          if (!(error instanceof LeaseLostError)) throw error;
          lost = error;
          return error.value;
        });
      const returnedAt = machineNow();
      const outcome = lost ? 'lost' : outcomes.get(`once:${key}`)!.shift()!;
      return { key, text: JSON.stringify(result), outcome, returnedAt };
    };
    const answered = await Promise.all(keys.map(call));
    stop();
    return answered;
  },

  /** One call. Resolves to its result, or to the name of its error. */
  async call(key: string, { resultTtlMs, workMs }: CallsOptions): Promise<string> {
    try {
      return JSON.stringify(await once.run(key, { resultTtlMs }, () => workOn(key, workMs)));
    } catch (error) {
      return (error as Error).name;
    }
  },
};

export type OnceVerbs = typeof verbs;

process.on('message', ({ id, verb, args }: { id: number; verb: keyof OnceVerbs; args: never[] }) => {
  const answer = verbs[verb] as (...given: never[]) => Promise<unknown>;
  answer(...args).then(
    (value) => process.send!({ id, value }),
    (error: unknown) => process.send!({ id, error: String(error) }),
  );
});
process.on('disconnect', () => process.exit());
await store.start(10_000);
process.send!({ id: 0, value: true });
