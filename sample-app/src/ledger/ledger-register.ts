import { Injectable } from '@nestjs/common';
import { StaleFencingTokenError } from 'nestjs-redis-lock/fence';
import { Database } from '../database/database.js';

export interface Closing {
  token: number;
  closedBy: string;
}

/** The one place that nobody can fool: comparing the token and writing are one step, where the record is kept. */
@Injectable()
export class LedgerRegister {
  constructor(private readonly database: Database) {}

  /** @returns whether it was written: not after a later holder has written */
  async write(closing: Closing): Promise<boolean> {
    try {
      await this.database.fenced('ledger:token', closing.token, [
        ['RPUSH', 'ledger:closings', JSON.stringify(closing)],
      ]);
      return true;
    } catch (error) {
      if (error instanceof StaleFencingTokenError) return false;
      throw error;
    }
  }

  /** In the order in which they were written. */
  closings(): Promise<Closing[]> {
    return this.database.rows('ledger:closings');
  }
}
