import type { Redis } from 'ioredis';
import { infoFields } from '../script/pairs.js';

/** What a server says of keys that it removes because its memory is full. */
export interface Eviction {
  /** `maxmemory-policy`. */
  readonly policy: string;
  /** Whether it may remove a lock that is held: it has a limit, and removes keys when that is reached. */
  readonly isPossible: boolean;
  /** How many keys it has removed since it started. */
  readonly evictedKeys: number;
}

/** Reads the fields of INFO. `undefined` if they do not tell it. */
export function evictionOf(info: ReadonlyMap<string, string>): Eviction | undefined {
  const policy = info.get('maxmemory_policy');
  if (policy === undefined) return undefined;
  const isPossible = policy !== 'noeviction' && info.get('maxmemory') !== '0';
  return { policy, isPossible, evictedKeys: Number(info.get('evicted_keys') ?? 0) };
}

/** Asks a server. `undefined` if it does not tell it, or the user may not use INFO. Never rejects. */
export async function readEviction(client: Redis): Promise<Eviction | undefined> {
  // Before Redis 7, it takes one section only.
  const sections = await Promise.all(['memory', 'stats'].map((section) => client.info(section))).catch(() => []);
  return evictionOf(infoFields(sections.join('\n')));
}
