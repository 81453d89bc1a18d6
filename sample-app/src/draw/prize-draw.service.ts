import { Injectable } from '@nestjs/common';
import { SingletonCron, type SingletonRun } from 'nestjs-redis-lock/schedule';
import { Database } from '../database/database.js';
import { RunBook } from '../run-book/run-book.js';
import { settings } from '../settings.js';

const CUSTOMERS = ['alice', 'bob', 'carol', 'dave'];

/** Two prizes for one draw would be a pity, and so would none. */
@Injectable()
export class PrizeDrawService {
  constructor(
    private readonly database: Database,
    private readonly runBook: RunBook,
  ) {}

  /** Every instance has the schedule; each tick is drawn on one of them. A draw that comes late does not cost the next one. */
  @SingletonCron(settings.drawSchedule, { name: 'prize-draw', overlap: 'wait' })
  async draw(run: SingletonRun): Promise<void> {
    await this.runBook.write(run);
    const winner = CUSTOMERS[Math.floor(Math.random() * CUSTOMERS.length)];
    await this.database.append('winners', { winner, tick: run.tick });
  }
}
