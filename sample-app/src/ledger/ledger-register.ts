import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';

export interface Closing {
  token: number;
  closedBy: string;
}

/**
 * Writes a closing unless it has seen a larger fencing token. KEYS[1] the largest token, KEYS[2] the closings; ARGV[1] the
 * token, ARGV[2] the closing. Replies 1 when written, 0 when refused. In SQL, with the token kept in a row of its own:
 * UPDATE register SET token = :token WHERE token <= :token, and INSERT in the same transaction if that found the row.
 */
const WRITE = `
  local largest = tonumber(redis.call('GET', KEYS[1]) or '0')
  if tonumber(ARGV[1]) < largest then return 0 end
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('RPUSH', KEYS[2], ARGV[2])
  return 1`;

/** The one place that nobody can fool: comparing the token and writing are one step, where the record is kept. */
@Injectable()
export class LedgerRegister {
  constructor(private readonly database: Database) {}

  /** @returns whether it was written */
  async write(closing: Closing): Promise<boolean> {
    const keys = ['ledger:token', 'ledger:closings'];
    return (await this.database.atomically<number>(WRITE, keys, closing.token, JSON.stringify(closing))) === 1;
  }

  /** In the order in which they were written. */
  closings(): Promise<Closing[]> {
    return this.database.rows('ledger:closings');
  }
}
