import { Controller, Get, ServiceUnavailableException } from '@nestjs/common';
import { RedisLockHealth } from 'nestjs-redis-lock/health';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

/** For load balancers: readiness, not liveness. */
@Controller()
export class HealthController {
  constructor(
    private readonly locks: RedisLockHealth,
    private readonly database: Database,
  ) {}

  @Get('health')
  async health() {
    const [database, { locks }] = await Promise.all([
      this.database.ping().then(
        () => 'up' as const,
        () => 'down' as const,
      ),
      this.locks.isHealthy('locks'),
    ]);
    const { instance } = settings;
    if (database === 'up' && locks.status === 'up') return { instance, status: 'up', locks };
    const { status, problems } = locks;
    throw new ServiceUnavailableException({ instance, database, locks: status, problems });
  }
}
