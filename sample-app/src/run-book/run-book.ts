import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** One run of a scheduled job. */
export interface Run {
  instance: string;
  /** The time it was scheduled for. */
  tick: string;
  /** Whether the instance that had begun this tick died before it was done. */
  rerun: boolean;
}

/** Who ran which job for which tick, by all instances. The locks tell which tick it is. */
@Injectable()
export class RunBook implements OnModuleInit, OnModuleDestroy {
  readonly #started = new Map<string, Pick<Run, 'tick' | 'rerun'>>();
  #stopObserving = (): void => {};

  constructor(
    private readonly locks: RedisLockService,
    private readonly database: Database,
  ) {}

  onModuleInit(): void {
    this.#stopObserving = this.locks.observe((event) => {
      if (event.type === 'tickStarted') this.#started.set(event.job, { tick: event.tick, rerun: event.rerun });
    });
  }

  onModuleDestroy(): void {
    this.#stopObserving();
  }

  /** Called by a job when it begins. */
  async write(job: string): Promise<Run> {
    const run = { instance: settings.instance, ...this.#started.get(job)! };
    await this.database.append(`runs:${job}`, run);
    return run;
  }

  runs(job: string): Promise<Run[]> {
    return this.database.rows(`runs:${job}`);
  }
}
