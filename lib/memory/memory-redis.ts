import { createHash } from 'node:crypto';
import { type Clock, SYSTEM_CLOCK } from '../kernel/util/clock.js';
import { sweep } from '../kernel/util/objects.js';
import { soon } from '../kernel/util/promises.js';
import { RedisError, type Value } from './lua.js';
import { SortedSet } from './sorted-set.js';

type Data = string | Map<string, string> | string[] | SortedSet;

interface Entry {
  data: Data;
  expiresAt: number;
}

/**
 * Shared, because to capture a stack takes longer than the command, and scripts provoke it to learn the type of a key.
 */
const WRONG_TYPE = new RedisError('WRONGTYPE Operation against a key holding the wrong kind of value');

/**
 * Replaces Redis in the memory of **one process**: the commands that the scripts use. Nothing outside the process sees
 * it, and its data ends with the process.
 */
export class MemoryRedis {
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Map<string, Set<(message: string) => void>>();

  /**
   * The wall clock minus the monotonic one at the start, so that its time advances evenly even if the wall clock is
   * set.
   */
  readonly #aheadMs: number;
  /** The start of the running script. */
  #frozenAt: number | undefined;
  /** `true` makes TIME follow the wall clock, which decides about the ticks of jobs. */
  isByWallClock = false;

  constructor(readonly clock: Clock = SYSTEM_CLOCK) {
    this.#aheadMs = clock.wallNow() - clock.now();
  }

  /** Receives the messages of a channel until the returned function is called. */
  subscribe(channel: string, listener: (message: string) => void): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(channel);
    };
  }

  /** Integer milliseconds since 1970. */
  now(): number {
    return this.#frozenAt ?? Math.floor(this.#aheadMs + this.clock.now());
  }

  /**
   * Runs a script. As in Redis, the time does not change while it runs, so no key expires between two of its commands.
   */
  atOnce<T>(script: () => T): T {
    this.#frozenAt = this.now();
    try {
      return script();
    } finally {
      this.#frozenAt = undefined;
    }
  }

  flushall(): void {
    this.#entries.clear();
  }

  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.#entry(key));
  }

  sha1hex(text: string): string {
    return createHash('sha1').update(text).digest('hex');
  }

  time(): [string, string] {
    const now = this.isByWallClock ? Math.floor(this.clock.wallNow()) : this.now();
    return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
  }

  exists(...keys: string[]): number {
    let count = 0;
    for (const key of keys) if (this.#entry(key)) count++;
    return count;
  }

  del(key: string): number {
    return this.#entry(key) && this.#entries.delete(key) ? 1 : 0;
  }

  type(key: string): 'string' | 'none' | 'other' {
    const data = this.#entry(key)?.data;
    return data === undefined ? 'none' : typeof data === 'string' ? 'string' : 'other';
  }

  pttl(key: string): number {
    const entry = this.#entry(key);
    if (!entry) return -2;
    return entry.expiresAt === Infinity ? -1 : entry.expiresAt - this.now();
  }

  pexpire(key: string, ms: Value): number {
    const entry = this.#entry(key);
    if (!entry) return 0;
    entry.expiresAt = this.now() + Number(ms);
    return 1;
  }

  get(key: string): string | undefined {
    const data = this.#entry(key)?.data;
    if (data !== undefined && typeof data !== 'string') throw WRONG_TYPE;
    return data;
  }

  set(key: string, value: Value, how?: 'PX' | 'KEEPTTL', ms?: Value): void {
    const kept = how === 'KEEPTTL' ? this.#entry(key)?.expiresAt : undefined;
    const expiresAt = how === 'PX' ? this.now() + Number(ms) : (kept ?? Infinity);
    this.#add(key, String(value), expiresAt);
  }

  incrby(key: string, by: Value): number {
    const value = Number(this.get(key) ?? 0) + Number(by);
    if (!Number.isInteger(value)) throw new RedisError('ERR value is not an integer or out of range');
    const entry = this.#entry(key);
    if (entry) entry.data = String(value);
    else this.#add(key, String(value));
    return value;
  }

  hget(key: string, field: string): string | undefined {
    return this.#hash(key)?.get(field);
  }

  hmget(key: string, ...fields: string[]): (string | undefined)[] {
    const hash = this.#hash(key);
    return fields.map((field) => hash?.get(field));
  }

  hgetall(key: string): string[] {
    return [...(this.#hash(key) ?? [])].flat();
  }

  hlen(key: string): number {
    return this.#hash(key)?.size ?? 0;
  }

  hset(key: string, ...pairs: Value[]): number {
    let hash = this.#hash(key);
    if (!hash) this.#add(key, (hash = new Map()));
    const before = hash.size;
    for (let index = 0; index < pairs.length; index += 2) hash.set(pairs[index], String(pairs[index + 1]));
    return hash.size - before;
  }

  hdel(key: string, ...fields: string[]): number {
    const hash = this.#hash(key);
    let count = 0;
    for (const field of fields) if (hash?.delete(field)) count++;
    if (hash?.size === 0) this.#entries.delete(key);
    return count;
  }

  hscan(key: string, _cursor: Value, _count: 'COUNT', _size: number): [string, string[]] {
    return ['0', this.hgetall(key)];
  }

  /** Takes the first ones, so that each run of a test sees the same. */
  hrandfield(key: string, count: number, _with: 'WITHVALUES'): string[] {
    return [...(this.#hash(key) ?? [])].slice(0, count).flat();
  }

  lpush(key: string, ...values: Value[]): number {
    let list = this.#list(key);
    if (!list) this.#add(key, (list = []));
    for (const value of values) list.unshift(String(value));
    return list.length;
  }

  lrange(key: string, first: Value, last: Value): string[] {
    const list = this.#list(key) ?? [];
    return list.slice(Number(first), Number(last) === -1 ? undefined : Number(last) + 1);
  }

  ltrim(key: string, first: Value, last: Value): void {
    const entry = this.#entry(key);
    if (entry) entry.data = this.lrange(key, first, last);
  }

  lrem(key: string, _count: 1, value: string): number {
    const list = this.#list(key);
    const index = list?.indexOf(value) ?? -1;
    if (index < 0) return 0;
    list!.splice(index, 1);
    if (list!.length === 0) this.#entries.delete(key);
    return 1;
  }

  lset(key: string, index: Value, value: string): void {
    this.#list(key)![Number(index)] = value;
  }

  llen(key: string): number {
    return this.#list(key)?.length ?? 0;
  }

  zadd(key: string, ...pairs: Value[]): number {
    let set = this.#zset(key);
    if (!set) this.#add(key, (set = new SortedSet()));
    let added = 0;
    for (let index = 0; index < pairs.length; index += 2)
      if (set.add(Number(pairs[index]), String(pairs[index + 1]))) added++;
    return added;
  }

  zrem(key: string, ...members: Value[]): number {
    const set = this.#zset(key);
    let count = 0;
    for (const member of members) if (set?.delete(member)) count++;
    if (set?.size === 0) this.#entries.delete(key);
    return count;
  }

  zcard(key: string): number {
    return this.#zset(key)?.size ?? 0;
  }

  zscore(key: string, member: string): string | undefined {
    const score = this.#zset(key)?.scoreOf(member);
    return score === undefined ? undefined : String(score);
  }

  zcount(key: string, from: Value, to: Value): number {
    const set = this.#zset(key);
    return set ? Math.max(0, set.rankBelow(to, false) - set.rankBelow(from, true)) : 0;
  }

  zrange(key: string, from: Value, to: Value, ...options: Value[]): string[] {
    const set = this.#zset(key);
    return set ? set.range(from, to, options) : [];
  }

  publish(channel: string, message: string): number {
    const listeners = this.#listeners.get(channel);
    if (listeners === undefined) return 0;
    for (const listener of message === '' ? [] : listeners) {
      void soon(() => this.#listeners.get(channel)?.has(listener) && listener(message));
    }
    return listeners.size;
  }

  /** @param channel its name, or a prefix and an asterisk for CHANNELS */
  pubsub(what: 'NUMSUB' | 'CHANNELS', channel: string): (string | number)[] {
    if (what === 'NUMSUB') return [channel, this.#listeners.get(channel)?.size ?? 0];
    return [...this.#listeners.keys()].filter((name) => name.startsWith(channel.slice(0, -1)));
  }

  #entry(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.expiresAt > this.now()) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #add(key: string, data: Data, expiresAt = Infinity): void {
    const entry = this.#entries.get(key);
    if (entry) {
      entry.data = data;
      entry.expiresAt = expiresAt;
      return;
    }
    sweep(this.#entries, (other) => other.expiresAt <= this.now());
    this.#entries.set(key, { data, expiresAt });
  }

  #hash(key: string): Map<string, string> | undefined {
    return this.#dataOf(key, Map<string, string>);
  }

  #list(key: string): string[] | undefined {
    return this.#dataOf(key, Array<string>);
  }

  #zset(key: string): SortedSet | undefined {
    return this.#dataOf(key, SortedSet);
  }

  #dataOf<T extends Data>(key: string, type: new () => T): T | undefined {
    const data = this.#entry(key)?.data;
    if (data !== undefined && !(data instanceof type)) throw WRONG_TYPE;
    return data;
  }
}
