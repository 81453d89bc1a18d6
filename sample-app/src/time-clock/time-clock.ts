import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** A visitor arrives at a place, or leaves it. One who died there has never left. */
export interface Stamp {
  visit: string;
  instance: string;
  at: 'in' | 'out';
}

/**
 * Records who was where at the same time, on all instances: stamped in the order of the database, independent of locks.
 */
@Injectable()
export class TimeClock {
  constructor(private readonly database: Database) {}

  async during<T>(place: string, work: () => Promise<T>): Promise<T> {
    const visit = { visit: randomUUID(), instance: settings.instance };
    await this.database.append(`stamps:${place}`, { ...visit, at: 'in' } satisfies Stamp);
    try {
      return await work();
    } finally {
      await this.database.append(`stamps:${place}`, { ...visit, at: 'out' } satisfies Stamp);
    }
  }

  stamps(place: string): Promise<Stamp[]> {
    return this.database.rows(`stamps:${place}`);
  }
}
