import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Once } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { TimeClock } from '../time-clock/time-clock.js';

export interface Bestsellers {
  skus: string[];
  countedBy: string;
}

/** What sells best: a slow query, whose result is good enough for a minute, and which everybody asks for at once. */
@Injectable()
export class BestsellersService {
  constructor(private readonly timeClock: TimeClock) {}

  /** One instance runs the query. Calls that come meanwhile, on any instance, wait for its result. */
  @Once({ key: 'bestsellers', resultTtlMs: 60_000 })
  async read(): Promise<Bestsellers> {
    return this.count('bestsellers');
  }

  /** The same without `@Once`, for the demo: a query for each request, which is a cache stampede. */
  readAlone(): Promise<Bestsellers> {
    return this.count('bestsellers-alone');
  }

  private count(place: string): Promise<Bestsellers> {
    return this.timeClock.during(place, async () => {
      await sleep(settings.queryMs);
      return { skus: ['tea', 'jam', 'mug'], countedBy: settings.instance };
    });
  }
}
