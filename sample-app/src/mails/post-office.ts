import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';
import type { Mail } from './outbox.js';

/** A mail as it came, and who brought it. */
export interface Arrival extends Mail {
  instance: string;
  /** Of the term of the leader. 0 where there was none. */
  token: number;
}

/**
 * Stands in for the provider that sends the mails. It takes the id as an idempotency key: what comes twice is delivered once. No lock
 * could see to that, because nobody knows what a leader that died has sent and not yet ticked off.
 */
@Injectable()
export class PostOffice {
  constructor(private readonly database: Database) {}

  async send(box: string, mail: Mail, token: number): Promise<void> {
    await sleep(settings.mailMs);
    await this.database.append(`post:${box}`, { ...mail, instance: settings.instance, token } satisfies Arrival);
  }

  arrivals(box: string): Promise<Arrival[]> {
    return this.database.rows(`post:${box}`);
  }

  /** What the customers get. */
  async delivered(box: string): Promise<string[]> {
    return [...new Set((await this.arrivals(box)).map(({ id }) => id))];
  }
}
