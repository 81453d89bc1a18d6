import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { fence, type FencedCommand, StaleFencingTokenError } from 'nestjs-redis-lock/fence';
import { settings } from '../settings.js';

/**
 * Replaces the shop's database, which all instances share. It reads and writes one thing at a time, and has no locks:
 * they are the topic of the rest of the shop.
 */
@Injectable()
export class Database implements OnApplicationShutdown {
  readonly #redis = new Redis(settings.redisUrl, {
    keyPrefix: `${settings.shop}:`,
    maxRetriesPerRequest: 1,
    commandTimeout: 5_000,
  });

  constructor() {
    // Each command rejects by itself; without a listener ioredis prints every attempt to reconnect.
    this.#redis.on('error', () => {});
  }

  async number(key: string): Promise<number | undefined> {
    const text = await this.#redis.get(key);
    return text === null ? undefined : Number(text);
  }

  async setNumber(key: string, value: number): Promise<void> {
    await this.#redis.set(key, value);
  }

  async json<T>(key: string): Promise<T | undefined> {
    const text = await this.#redis.get(key);
    return text === null ? undefined : (JSON.parse(text) as T);
  }

  async setJson(key: string, value: object): Promise<void> {
    await this.#redis.set(key, JSON.stringify(value));
  }

  async remove(...keys: string[]): Promise<void> {
    await this.#redis.del(keys);
  }

  async append(list: string, row: object): Promise<void> {
    await this.#redis.rpush(list, JSON.stringify(row));
  }

  async rows<T>(list: string): Promise<T[]> {
    const rows = await this.#redis.lrange(list, 0, -1);
    return rows.map((row) => JSON.parse(row) as T);
  }

  async removeRow(list: string, row: object): Promise<void> {
    await this.#redis.lrem(list, 1, JSON.stringify(row));
  }

  /**
   * Writes as one step, unless a larger fencing token has written under this key. Only for what cannot be left to a lock: see
   * the ledger.
   */
  async fenced(key: string, token: number, commands: FencedCommand[]): Promise<void> {
    await fence.guard(this.#redis, { key, token }, commands);
  }

  /** Called before reading: from now on no smaller token can write. A larger one that was there before does no harm. */
  async refuseOlder(key: string, token: number): Promise<void> {
    await fence.guard(this.#redis, { key, token }, []).catch((error: unknown) => {
      if (!(error instanceof StaleFencingTokenError)) throw error;
    });
  }

  async ping(): Promise<void> {
    await this.#redis.ping();
  }

  /** Called after `beforeApplicationShutdown`, which drains the locks. */
  onApplicationShutdown(): void {
    this.#redis.disconnect();
  }
}
