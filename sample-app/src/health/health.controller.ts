import { Controller, Get, ServiceUnavailableException } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

const ANY_RESOURCE = 'health';

/** For load balancers. */
@Controller()
export class HealthController {
  constructor(
    private readonly locks: RedisLockService,
    private readonly database: Database,
  ) {}

  @Get('health')
  async health(): Promise<{ instance: string; status: 'up' }> {
    const [database, locks] = await Promise.allSettled([this.database.ping(), this.locks.inspect(ANY_RESOURCE)]);
    if (database.status === 'fulfilled' && locks.status === 'fulfilled') {
      return { instance: settings.instance, status: 'up' };
    }
    throw new ServiceUnavailableException({
      instance: settings.instance,
      database: database.status === 'fulfilled' ? 'up' : 'down',
      locks: locks.status === 'fulfilled' ? 'up' : 'down',
    });
  }
}
