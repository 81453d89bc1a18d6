import type { ForeignClaim, ForeignReply, ForeignRun } from '../core/api/foreign-lock.js';
import { isOne } from '../redis/lock-replies.js';
import { scriptOf } from '../redis/script/script.js';
import { type ForeignServer, HELD, readAcquired } from './foreign-server.js';

interface KeyOwner {
  /** The value of the key while this owner has it; no other owner may ever have the same. */
  readonly value: string;
  readonly run?: ForeignRun | undefined;
  /** How long the key stays at least once it was set. @default 0 */
  readonly keepMs?: number | undefined;
}

/** A claim to a lock that is one string with an expiry, on one server. */
export class KeyClaim implements ForeignClaim {
  readonly #keys: readonly string[];
  #keptUntil = -Infinity;

  constructor(
    private readonly server: ForeignServer,
    key: string,
    private readonly owner: KeyOwner,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#keys = [server.key(key)];
  }

  async tryAcquire(leaseMs: number, signal: AbortSignal): Promise<ForeignReply> {
    await this.server.connected(signal);
    const { value, run, keepMs = 0 } = this.owner;
    const args = [value, Math.max(leaseMs, keepMs), run?.name ?? '', run?.token ?? 0];
    return this.server.run(ACQUIRE, this.#keys, args, (reply) => {
      const read = readAcquired(reply);
      // From now on, not from the sending: the key must not go earlier than the old code would let it.
      if (read.status === 'held' && this.#keptUntil === -Infinity) this.#keptUntil = this.now() + keepMs;
      return read;
    });
  }

  renew(leaseMs: number): Promise<boolean> {
    return this.server.run(RENEW, this.#keys, [this.owner.value, leaseMs], isOne);
  }

  describeTrouble(): string | undefined {
    return this.server.describeTrouble(this.#keys[0]!);
  }

  release(keepMs: number): Promise<boolean> {
    const leftMs = Math.ceil(Math.max(keepMs, this.#keptUntil - this.now(), 0));
    return this.server.run(RELEASE, this.#keys, [this.owner.value, leftMs], isOne);
  }
}

/**
 * The scripts for a lock that is one string: its value names the owner, and its expiry is the end of the lease. They
 * leave what `SET key value NX PX leaseMs` leaves. All of them may be executed twice, or late.
 *
 * A run of a singleton job takes over what an earlier run of the same job has left: the name of the job and the token of
 * the run are in the value. By the order of the tokens, a late command of an earlier run takes nothing over.
 */
const ACQUIRE = scriptOf(
  'foreignAcquire',
  `
local present = redis.call('get', KEYS[1])
local ttl = present and redis.call('pttl', KEYS[1]) or 0
if present and present ~= ARGV[1] then
  local _, last = nil, nil
  if ARGV[3] ~= '' then _, last = string.find(present, ARGV[3], 1, true) end
  local token = last and tonumber(string.match(present, '^(%d+):', last + 1))
  if not token then return ttl end
  if token >= tonumber(ARGV[4]) then return { ttl } end
  redis.call('set', KEYS[1], ARGV[1], 'PX', math.max(ttl, ARGV[2]))
elseif not present or ttl < tonumber(ARGV[2]) then
  redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return ${HELD}
`,
);

/** Never makes the lease shorter: a renewal that comes late cuts nothing. */
const RENEW = scriptOf(
  'foreignRenew',
  `
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return 0
end
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return 1
`,
);

/**
 * Where the key has to stay for a time, it stays under another value. So no late command of its owner changes it, and
 * the same release, sent again, finds that it was executed.
 */
const RELEASE = scriptOf(
  'foreignRelease',
  `
local present = redis.call('get', KEYS[1])
local kept = ARGV[1] .. ' kept'
if present == ARGV[1] then
  if tonumber(ARGV[2]) > 0 then
    redis.call('set', KEYS[1], kept, 'PX', ARGV[2])
  else
    redis.call('del', KEYS[1])
  end
  return 1
end
return present == kept and 1 or 0
`,
);
