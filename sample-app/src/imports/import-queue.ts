import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import type { ImportFile } from './import-register.js';

/** A file that is to be booked by whichever worker takes it. */
export interface ImportJob extends ImportFile {
  begunBy: string;
  /** What `lease.transfer()` gave. Whoever reads the queue can take the lock, so nobody but the workers may. */
  lease?: string;
}

/** Stands in for a message queue. */
@Injectable()
export class ImportQueue {
  constructor(private readonly database: Database) {}

  async put(job: ImportJob): Promise<void> {
    await this.database.append('import-queue', job);
  }

  /** Gives a job to one worker. If that one dies, its job is gone, and its lease ends: then the file is to be sent again. */
  take(): Promise<ImportJob | undefined> {
    return this.database.takeRow('import-queue');
  }
}
