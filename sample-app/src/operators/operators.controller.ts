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
import { type LockState, RedisLockService } from 'nestjs-redis-lock';
import { OperatorsGuard } from './operators.guard.js';

/** For people: who holds what and who waits for it, and the end of a lease that nobody wants to wait for. */
@Controller('operators/locks')
@UseGuards(OperatorsGuard)
export class OperatorsController {
  constructor(private readonly locks: RedisLockService) {}

  @Get()
  list(@Query('prefix') prefix = ''): Promise<LockState[]> {
    return this.locks.list({ prefix });
  }

  @Get(':resource')
  inspect(@Param('resource') resource: string): Promise<LockState> {
    return this.locks.inspect(resource);
  }

  /**
   * Ends the lease that was seen, and none that came after it. Its holder may go on working for a moment (a third of its lease):
   * what it must not write then is a matter of fencing tokens.
   */
  @Delete(':resource/leases/:token')
  @HttpCode(204)
  async end(@Param('resource') resource: string, @Param('token', ParseIntPipe) fencingToken: number): Promise<void> {
    if (await this.locks.forceRelease(resource, { fencingToken })) return;
    throw new NotFoundException(`${resource} is not held with token ${fencingToken}`);
  }
}
