import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { within } from '../../../lib/kernel/util/promises.js';
import { machineNow } from '../../../test/support/expect/machine-now.js';
import type { Leftovers } from '../history/entries.js';

const LOOKS = 10;
/** A server that a fault has left behind answers nothing, and its client would ask for ever. */
const PATIENCE_MS = 30_000;

/** One for the whole prefix, or, on a cluster, one for each slot in use. */
const FENCE = /:fence$/;
/**
 * Keys that expire by themselves: the record of a job, which outlives its runs by a week; and roll calls with their
 * answers, which a process requests before a timeout while its caller holds a lock, and which live for 5 s.
 */
export const ENDS_BY_ITSELF = /\}:(?:runs|job|instances)$|(?:^|:)roll(?::[\w-]+)?$/;
/** Records of ticks, and the index of all jobs. */
const TICKS_AND_INDEX = /:tick:|\}:last-tick$|[^}]:jobs$/;

type Left = Pick<Leftovers, 'keys' | 'clients' | 'channels'>;

/**
 * The keys that the workers have left in Redis, except the fence, records of jobs, and roll calls, which expire by
 * themselves. Waits for the locks of killed workers, which end with their leases.
 *
 * @throws Error if a server does not answer
 */
export async function whatIsLeft(
  admins: readonly Redis[],
  keyPrefix: string,
  waitMs: number,
  patienceMs = PATIENCE_MS,
): Promise<Left> {
  const giveUpAt = machineNow() + waitMs;
  // More than once: the first answer may be one that was long under way.
  for (let looked = 1; ; looked++) {
    const all = await Promise.all(admins.map((admin) => answered(admin, look(admin, keyPrefix), patienceMs)));
    const left = {
      keys: all.flatMap(({ keys }) => keys),
      clients: all.flatMap(({ clients }) => clients),
      channels: all.flatMap(({ channels }) => channels),
    };
    const isNothing = left.keys.length + left.clients.length + left.channels.length === 0;
    if (isNothing || (looked >= LOOKS && machineNow() > giveUpAt)) return left;
    await sleep(20);
  }
}

async function answered<T>({ options }: Redis, answer: Promise<T>, patienceMs: number): Promise<T> {
  const found = await within(patienceMs, answer);
  if (found === undefined) throw new Error(`What is left is not known: nothing answers on port ${options.port}`);
  return found;
}

async function look(admin: Redis, keyPrefix: string): Promise<Left> {
  const [others, all, clients, channels] = await Promise.all([
    keysElsewhere(admin),
    admin.keys(`${keyPrefix}:*`),
    admin.client('LIST') as Promise<string>,
    admin.pubsub('CHANNELS', `${keyPrefix}:*`) as Promise<string[]>,
  ]);
  const keys = [...others];
  for (const key of all) {
    if (FENCE.test(key)) continue;
    // A replica has it, too, and answers that its primary should be asked.
    if (
      (ENDS_BY_ITSELF.test(key) || TICKS_AND_INDEX.test(key)) &&
      (await admin.pttl(key).catch(() => undefined)) !== -1
    )
      continue;
    keys.push(key);
  }
  return { keys, clients: clients.split('\n').filter((line) => line.includes('name=nestjs-redis-lock')), channels };
}

/** Finds connections that continued in database 0 after their SELECT was refused. */
async function keysElsewhere(admin: Redis): Promise<string[]> {
  const own = `db${admin.options.db ?? 0}`;
  const databases = [...(await admin.info('keyspace')).matchAll(/^(db\d+):keys=(\d+)/gm)];
  return databases.flatMap(([, name, count]) => (name === own ? [] : [`${count} keys in ${name}`]));
}
