import {
  Controller,
  Delete,
  Get,
  HttpCode,
  NotFoundException,
  Param,
  ParseIntPipe,
  Query,
  UseGuards,
} from '@nestjs/common';
import { type Contention, type LockExplanation, type LockState, RedisLockService } from 'nestjs-redis-lock';
import { OperatorsGuard } from './operators.guard.js';

/**
 * For people: which work has waited for which, which process holds a lock, why a call cannot get it, and the early end of a
 * lease.
 */
@Controller('operators')
@UseGuards(OperatorsGuard)
export class OperatorsController {
  constructor(private readonly locks: RedisLockService) {}

  /** For the calls of this instance, since its start. */
  @Get('contention')
  contention(): Contention {
    return this.locks.contention();
  }

  @Get('locks')
  list(@Query('prefix') prefix = ''): Promise<LockState[]> {
    return this.locks.list({ prefix });
  }

  @Get('locks/:resource')
  inspect(@Param('resource') resource: string): Promise<LockState> {
    return this.locks.inspect(resource);
  }

  /** The same in sentences, with the likely cause. */
  @Get('locks/:resource/explain')
  explain(@Param('resource') resource: string): Promise<LockExplanation> {
    return this.locks.explain(resource);
  }

  /**
   * Ends the lease with this token, and no later one. Its holder may continue for a moment (a third of its lease):
   * fencing tokens protect against its late writes.
   */
  @Delete('locks/:resource/leases/:token')
  @HttpCode(204)
  async end(@Param('resource') resource: string, @Param('token', ParseIntPipe) fencingToken: number): Promise<void> {
    if (await this.locks.forceRelease(resource, { fencingToken })) return;
    throw new NotFoundException(`${resource} is not held with token ${fencingToken}`);
  }
}
