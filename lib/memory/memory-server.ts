import { type Clock, SYSTEM_CLOCK } from '../kernel/util/clock.js';
import type { LockMode } from '../kernel/api/lock-options.js';
import { instanceOf } from '../kernel/store/ask.js';
import type { LockState } from '../kernel/store/lock-state.js';
import { Keys } from '../redis/keys.js';
import { type InspectReply, readState as readReply } from '../redis/lock-replies.js';
import type { SCRIPT_TEXTS } from '../redis/script/scripts.generated.js';
import { MemoryRedis } from './memory-redis.js';
import { runScript } from './scripts.generated.js';
import type { Value } from './lua.js';

export interface MemoryMember {
  readonly owner: string;
  readonly fencingToken: number;
  readonly mode: LockMode;
  /** The permits of a semaphore; 1 in other modes. */
  readonly permits: number;
  readonly ttlMs: number;
}

const OF_JOBS: ReadonlySet<string> = new Set<keyof typeof SCRIPT_TEXTS>([
  'claimTick',
  'endRun',
  'exchangeClaim',
  'indexJobs',
  'lookJobs',
  'noteMissed',
  'pauseJob',
  'registerJob',
]);

/** The keys of a resource in use: its lock and its queue, but not the records of jobs. */
const IN_USE = /\}(:waiters)?$/;

/** Replaces Redis in the memory of **one process**. Stores that share one server compete like several instances. */
export class MemoryServer {
  readonly keys = new Keys('memory');
  readonly redis: MemoryRedis;

  constructor(readonly clock: Clock = SYSTEM_CLOCK) {
    this.redis = new MemoryRedis(clock);
    // Not a counter that starts again: nothing was lost.
    this.redis.set(this.keys.fence(''), 1);
  }

  run(name: keyof typeof SCRIPT_TEXTS, keys: readonly string[], args: readonly (string | number)[]): unknown {
    this.redis.isByWallClock = OF_JOBS.has(name);
    return this.redis.atOnce(() => replyOf(runScript(this.redis, name as never, keys, args.map(String))));
  }

  held(): string[] {
    return this.#named(/^memory:\{[^{}]*\}$/).filter((resource) => this.members(resource).length > 0);
  }

  /** Resources with a holder or a waiter. */
  resources(): string[] {
    const isUsed = (resource: string) => this.members(resource).length > 0 || this.waiters(resource).length > 0;
    return this.#named(/^memory:\{[^{}]*\}(:waiters)?$/).filter(isUsed);
  }

  #named(pattern: RegExp): string[] {
    const keys = this.redis.keys().filter((key) => pattern.test(key));
    return [...new Set(keys.map((key) => this.keys.resourceOf(key)!))];
  }

  /** The holders of a lock, by token. */
  members(resource: string): MemoryMember[] {
    const key = this.keys.lock(resource);
    const { redis } = this;
    if (redis.type(key) === 'string') {
      const [owner, token] = redis.get(key)!.split(' ') as [string, string];
      return [{ owner, fencingToken: Number(token), mode: 'exclusive', permits: 1, ttlMs: redis.pttl(key) }];
    }
    const fields = redis.hgetall(key);
    const mode = redis.hget(key, 'mode') as LockMode;
    const owner = redis.hget(key, 'owner');
    const token = redis.hget(key, 'token');
    if (owner !== undefined) return [{ owner, fencingToken: Number(token), mode, permits: 1, ttlMs: redis.pttl(key) }];
    const members: MemoryMember[] = [];
    const now = redis.now();
    for (let index = 0; index < fields.length; index += 2) {
      const [, permits, fencingToken, end] = /^(\d+) (\d+) (\d+) \d/.exec(fields[index + 1]!)?.map(Number) ?? [];
      if (!fields[index]!.includes('/') || end! <= now) continue;
      members.push({ owner: fields[index]!, fencingToken: fencingToken!, mode, permits: permits!, ttlMs: end! - now });
    }
    return members.sort((one, other) => one.fencingToken - other.fencingToken);
  }

  /** `true` if no resource has a lock or a waiter left. */
  get isEmpty(): boolean {
    return !this.redis.keys().some((key) => IN_USE.test(key));
  }

  /** Removes the lock of a resource like DEL does, without a message to any client. */
  lose(resource: string): void {
    this.redis.del(this.keys.lock(resource));
  }

  /** The owner ids of the waiters of the resource, in order. */
  waiters(resource: string): string[] {
    const now = this.redis.now();
    const members = this.redis.zrange(this.keys.waiters(resource), 0, -1);
    return members.filter((_, index) => {
      const [, expiry] = /^ \d+ \S+ (\d+) /.exec(members[index - 1] ?? '') ?? [];
      return Number(expiry) > now;
    });
  }

  /** The instances that wait for the resource, in order, once for each waiter. */
  listWaiters(resource: string): string[] {
    return this.waiters(resource).map(instanceOf);
  }
}

/** Converts the return value of a script to the reply that a client gets. */
function replyOf(value: Value): unknown {
  if (typeof value === 'number') return Math.trunc(value);
  if (value === undefined || value === false) return null;
  if (value === true) return 1;
  if (!Array.isArray(value)) return value;
  const end = value.indexOf(undefined);
  return (end < 0 ? value : value.slice(0, end)).map(replyOf);
}

/** Returns the state of one resource for a client, without the secrets of its holders and waiters. */
export function readLockState(server: MemoryServer, resource: string, clientId: string): LockState {
  const { keys } = server;
  const reply = server.run('inspect', [keys.lock(resource), keys.waiters(resource)], []);
  return readReply(resource, reply as InspectReply, clientId);
}
