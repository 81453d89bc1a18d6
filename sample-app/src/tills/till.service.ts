import { Injectable } from '@nestjs/common';
import { SingletonCron, type SingletonRun } from 'nestjs-redis-lock/schedule';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** One count of the till, for one tick or for all that were missed. */
export interface CashUp {
  tick: string;
  /** The number of missed ticks; 0 for a count in time. */
  missed: number;
}

/** Each shop counts its own till. No other shop can do that, so a tick is missed while this one is down. */
@Injectable()
export class TillService {
  constructor(private readonly database: Database) {}

  /** After an outage, the till is counted once for all ticks that were missed. */
  @SingletonCron(settings.tillSchedule, { name: `till-of-${settings.till}`, onMissed: 'runOnce', graceMs: 1_000 })
  async count({ tick, missed }: SingletonRun): Promise<void> {
    await this.database.append(`till:${settings.till}`, { tick, missed: missed?.count ?? 0 } satisfies CashUp);
  }

  counts(instance: string): Promise<CashUp[]> {
    return this.database.rows(`till:${instance}`);
  }
}
