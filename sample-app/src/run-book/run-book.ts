import { Injectable } from '@nestjs/common';
import type { SingletonRun } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** One run of a scheduled job. */
export interface Run {
  instance: string;
  /** The time it was scheduled for. */
  tick: string;
  /** `true` if the instance that had begun this tick died before it was done. */
  rerun: boolean;
}

/** Records which instance ran which job for which tick. */
@Injectable()
export class RunBook {
  constructor(private readonly database: Database) {}

  /** Called by a job when it begins. */
  async write({ job, tick, rerun }: SingletonRun): Promise<void> {
    const run: Run = { instance: settings.instance, tick, rerun };
    await this.database.append(`runs:${job}`, run);
  }

  runs(job: string): Promise<Run[]> {
    return this.database.rows(`runs:${job}`);
  }
}
