import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { machineNow } from '../../support/machine-now.js';
import type { Leftovers } from '../history/entries.js';

const LOOKS = 10;

type Left = Pick<Leftovers, 'keys' | 'clients' | 'channels'>;

/**
 * What the workers have left in Redis, but for the fence and the claims of ticks, which end by themselves. The locks of those
 * that were killed end with their leases: waits so long for them.
 */
export async function whatIsLeft(admin: Redis, keyPrefix: string, waitMs: number): Promise<Left> {
  const giveUpAt = machineNow() + waitMs;
  // More than once: the first answer may be one that was long under way.
  for (let looked = 1; ; looked++) {
    const left = await look(admin, keyPrefix);
    const isNothing = left.keys.length + left.clients.length + left.channels.length === 0;
    if (isNothing || (looked >= LOOKS && machineNow() > giveUpAt)) return left;
    await sleep(20);
  }
}

async function look(admin: Redis, keyPrefix: string): Promise<Left> {
  const [all, clients, channels] = await Promise.all([
    admin.keys(`${keyPrefix}:*`),
    admin.client('LIST') as Promise<string>,
    admin.pubsub('CHANNELS', `${keyPrefix}:*`) as Promise<string[]>,
  ]);
  const keys: string[] = [];
  for (const key of all) {
    if (key === `${keyPrefix}:fence`) continue;
    if (key.includes(':tick:') && (await admin.pttl(key)) !== -1) continue;
    keys.push(key);
  }
  return { keys, clients: clients.split('\n').filter((line) => line.includes('name=nestjs-redis-lock')), channels };
}
