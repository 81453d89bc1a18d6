import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';

export interface Mail {
  id: string;
  to: string;
}

/** The mails that are still to be sent. */
@Injectable()
export class Outbox {
  constructor(private readonly database: Database) {}

  async put(box: string, mail: Mail): Promise<void> {
    await this.database.append(`outbox:${box}`, mail);
  }

  waiting(box: string): Promise<Mail[]> {
    return this.database.rows(`outbox:${box}`);
  }

  /** After it was sent, so that none is lost. Does nothing the second time. */
  async tickOff(box: string, mail: Mail): Promise<void> {
    await this.database.removeRow(`outbox:${box}`, mail);
  }
}
