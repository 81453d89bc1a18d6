import type { Redis } from 'ioredis';
import { infoFields } from '../script/pairs.js';

/** A server's eviction of keys when its memory is full. */
export interface Eviction {
  /** `maxmemory-policy`. */
  readonly policy: string;
  /** `true` if it may remove a held lock: it has a limit, and removes keys when that is reached. */
  readonly isPossible: boolean;
  /** The number of keys it has removed since it started. */
  readonly evictedKeys: number;
}

/** Reads the fields of INFO. `undefined` if they do not contain it. */
export function evictionOf(info: ReadonlyMap<string, string>): Eviction | undefined {
  const policy = info.get('maxmemory_policy');
  if (policy === undefined) return undefined;
  const isPossible = policy !== 'noeviction' && info.get('maxmemory') !== '0';
  return { policy, isPossible, evictedKeys: Number(info.get('evicted_keys') ?? 0) };
}

/** Asks a server. `undefined` if it does not report it, or the user may not use INFO. Never rejects. */
export async function readEviction(client: Redis): Promise<Eviction | undefined> {
  // Before Redis 7, it takes one section only.
  const sections = await Promise.all(['memory', 'stats'].map((section) => client.info(section))).catch(() => []);
  return evictionOf(infoFields(sections.join('\n')));
}
