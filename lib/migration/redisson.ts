import type { ForeignClaim, ForeignClient, ForeignLock, ForeignReply, ForeignRun } from '../core/api/foreign-lock.js';
import { ForeignServer, HELD, readAcquired } from './foreign-server.js';
import {
  CLIENT_AND_KEY,
  type ForeignClientOption,
  foreignKey,
  type ForeignKey,
  type ForeignKeyOptions,
  ownerId,
} from './key-lock.js';
import { UnlockChannels, type UnlockWait } from './unlock-channels.js';
import { isOne } from '../redis/lock-replies.js';
import { scriptOf } from '../redis/script/script.js';

/** What {@link redisson} takes. */
export interface RedissonOptions extends ForeignClientOption, ForeignKeyOptions {
  /**
   * The name of the `RLock` for each of our resources: what the Java code passes to `getLock()`, after its
   * `NameMapper`, if it has one. Where it returns `undefined`, only our lock is taken.
   *
   * @allowed a function
   * @default the name of the resource
   */
  key?: ForeignKey;
}

/**
 * The `RLock` of Redisson, and of `node-redisson`, for the option `alsoLock`: Java services and Nest services take the
 * same lock, and wake each other when they release it. Its other locks are not supported. Use no `RFairLock`,
 * `RFencedLock` or `RReadWriteLock` of the same name.
 *
 * @throws InvalidLockOptionsError
 */
export function redisson(options: RedissonOptions): ForeignLock {
  CLIENT_AND_KEY.check('redisson', options);
  const { client, key } = options;
  return {
    library: 'redisson',
    keyOf: foreignKey('redisson', key),
    open(context): ForeignClient {
      const server = new ForeignServer(client, context);
      const channels = new UnlockChannels(server.connection.subscriber);
      // As an application of Java is known there: each claim is one of its threads.
      const id = context.randomId();
      let threads = 0;
      return {
        claim: (name, run) => new RedissonClaim(server, channels, name, `${ownerId(id, run)}:${++threads}`, run),
        close: () => server.close(),
      };
    },
  };
}

/** A claim to an `RLock` of Redisson, on one server or on a cluster. */
class RedissonClaim implements ForeignClaim {
  readonly #keys: readonly string[];
  readonly #channel: string;
  #wait: UnlockWait | undefined;
  /** Aborts when the call gives up, also between two questions. */
  #call: AbortSignal | undefined;

  /** @param field the field of the hash while this owner has the lock; no other owner may ever have the same */
  constructor(
    private readonly server: ForeignServer,
    private readonly channels: UnlockChannels,
    name: string,
    private readonly field: string,
    private readonly run?: ForeignRun,
  ) {
    const key = server.key(name);
    this.#keys = [key];
    this.#channel = channelOf(key);
  }

  async tryAcquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply> {
    await this.server.connected(signal);
    this.#call = signal;
    // An unlock that is heard from now on may have come after the answer.
    this.#wait?.ask();
    const reply = await this.server.run(
      REDISSON_ACQUIRE,
      this.#keys,
      [this.field, leaseMs, this.run?.name ?? '', this.run?.token ?? 0],
      readAcquired,
    );
    if (reply.status === 'held') this.#leave();
    return reply;
  }

  renew(leaseMs: number): Promise<boolean> {
    return this.server.run(REDISSON_RENEW, this.#keys, [this.field, leaseMs], isOne);
  }

  describeTrouble(): string | undefined {
    return this.server.describeTrouble(this.#keys[0]!);
  }

  release(keepMs: number): Promise<boolean> {
    this.#leave();
    const args = [this.field, Math.ceil(keepMs), this.#channel, this.server.connection.isCluster ? 1 : 0];
    return this.server.run(REDISSON_RELEASE, this.#keys, args, isOne);
  }

  /** Listens until the call has the lock or gives up, and not only for one pause: else it could miss an unlock. */
  whenFree(forMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#call?.aborted) return Promise.resolve();
    if (!this.#wait) {
      this.#wait = this.channels.join(this.#channel);
      this.#call?.addEventListener('abort', this.#leave, { once: true });
    }
    return this.#wait.untilUnlocked(forMs, signal);
  }

  readonly #leave = (): void => {
    this.#call?.removeEventListener('abort', this.#leave);
    this.#wait?.leave();
    this.#wait = undefined;
  };
}

/** Where Redisson announces an unlock. On a cluster, it is in the slot of the lock. */
export function channelOf(key: string): string {
  return `redisson_lock__channel:${key.includes('{') ? key : `{${key}}`}`;
}

/**
 * The scripts for a lock that is a hash with one field: its name says which thread of which application holds it, its
 * value how often that thread has entered it. An owner of ours is a thread that enters once. All of them may be executed
 * twice, or late. A run of a singleton job takes over from an earlier one, as with a key that is a string.
 */
const REDISSON_ACQUIRE = scriptOf(
  'redissonAcquire',
  `
local ttl = redis.call('pttl', KEYS[1])
if ttl ~= -2 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  if ARGV[3] == '' then return ttl end
  local fields = redis.call('hkeys', KEYS[1])
  for _, field in ipairs(fields) do
    local isRun = string.sub(field, 1, #ARGV[3]) == ARGV[3]
    local token = isRun and tonumber(string.match(field, '^(%d+):', #ARGV[3] + 1))
    if not token then return ttl end
    if token >= tonumber(ARGV[4]) then return { ttl } end
  end
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('hdel', KEYS[1], unpack(fields))
  redis.call('pexpire', KEYS[1], math.max(ttl, ARGV[2]))
elseif ttl < tonumber(ARGV[2]) then
  redis.call('hset', KEYS[1], ARGV[1], 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return ${HELD}
`,
);

/** Never makes the lease shorter: a renewal that comes late cuts nothing. */
const REDISSON_RENEW = scriptOf(
  'redissonRenew',
  `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return 1
`,
);

/**
 * Wakes the waiters. They hear it first, and ask when this script is over: where the user may not publish, nothing is
 * changed. On a cluster, Redisson listens for sharded messages since its version 3.22, if the servers know them.
 *
 * Where the lock has to stay for a time, it stays under another field. So no late command of its owner changes it, and
 * the same release, sent again, finds that it was executed.
 */
const REDISSON_RELEASE = scriptOf(
  'redissonRelease',
  `
local kept = ARGV[1] .. ':kept'
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return redis.call('hexists', KEYS[1], kept)
end
if tonumber(ARGV[2]) > 0 then
  redis.call('hdel', KEYS[1], ARGV[1])
  redis.call('hset', KEYS[1], kept, 1)
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
redis.call('publish', ARGV[3], '0')
if ARGV[4] == '1' then
  redis.pcall('spublish', ARGV[3], '0')
end
redis.call('hdel', KEYS[1], ARGV[1])
return 1
`,
);
