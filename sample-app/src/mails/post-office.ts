import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';
import type { Mail } from './outbox.js';

/** A mail as it came, and who brought it. */
export interface Arrival extends Mail {
  instance: string;
  /** The fencing token of the leader's term, or 0 without a leader. */
  token: number;
}

/**
 * Replaces the provider that sends the mails. It uses the id as an idempotency key: a duplicate is delivered once. No
 * lock could do that, because a leader that died may have sent a mail that it had not ticked off.
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

  /** The mails that the customers get. */
  async delivered(box: string): Promise<string[]> {
    return [...new Set((await this.arrivals(box)).map(({ id }) => id))];
  }
}
