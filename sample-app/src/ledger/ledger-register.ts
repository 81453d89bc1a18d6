import { Injectable } from '@nestjs/common';
import { fence } from 'nestjs-redis-lock/fence';
import { LedgerDatabase } from './ledger-database.js';

export interface Closing {
  token: number;
  closedBy: string;
}

/** Cannot be bypassed: the token is compared in the transaction that writes the record. */
@Injectable()
export class LedgerRegister {
  constructor(private readonly database: LedgerDatabase) {}

  /** @throws StaleFencingTokenError when a later holder has written: nothing is committed */
  async write({ token, closedBy }: Closing): Promise<void> {
    await this.database.transaction(async (client) => {
      // Not the lease: this process would refuse by itself, and the demo shows that it need not.
      await fence.guard(client, { resource: 'books', token });
      await client.query('INSERT INTO closings (token, closed_by) VALUES ($1, $2)', [token, closedBy]);
    });
  }

  /** In the order in which they were written. */
  async closings(): Promise<Closing[]> {
    return this.database.transaction(async (client) => {
      const { rows } = await client.query<Closing>('SELECT token, closed_by AS "closedBy" FROM closings ORDER BY id');
      // A BIGINT comes as a text.
      return rows.map(({ token, closedBy }) => ({ token: Number(token), closedBy }));
    });
  }
}
